//! What can be wrong with rows, tokens and parents, with the row and the value.

use crate::{LawError, TreeError};

/// Arguments of a primitive that do not fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PrimitiveError {
    /// Another number of rows than nodes ask for.
    #[error(
        "{name} has {found} rows, expected {expected}: one for each drafted token, and in \
         target_probs one more"
    )]
    Rows {
        /// The table.
        name: &'static str,
        /// Its rows.
        found: usize,
        /// The rows needed.
        expected: usize,
    },
    /// The tables disagree about the vocabulary.
    #[error("rows of {name} have {found} probabilities, those of target_probs have {expected}")]
    Width {
        /// The table.
        name: &'static str,
        /// Its vocabulary.
        found: usize,
        /// The target's vocabulary.
        expected: usize,
    },
    /// A number that is no probability.
    #[error(
        "row {row} of {name}: the probability of token {token} is {value}, expected a finite \
         number that is not negative"
    )]
    Probability {
        /// The table.
        name: &'static str,
        /// The row.
        row: usize,
        /// The first such token.
        token: u32,
        /// The number found.
        value: f64,
    },
    /// Probabilities that do not sum to 1.
    #[error(
        "row {row} of {name}: the probabilities sum to {sum}, expected 1 within {most}; normalise \
         the row"
    )]
    Sum {
        /// The table.
        name: &'static str,
        /// The row.
        row: usize,
        /// The sum found.
        sum: f64,
        /// How far from 1 it may be.
        most: f64,
    },
    /// A drafted token outside the vocabulary.
    #[error("draft_token_ids[{node}] is {token}, expected a token id in 0..{vocab}")]
    Token {
        /// The node.
        node: usize,
        /// Its token.
        token: i64,
        /// The size of the vocabulary.
        vocab: usize,
    },
    /// Another number of parents than of nodes.
    #[error("parents has {found} entries for {nodes} nodes, expected one for each")]
    Parents {
        /// The number of nodes.
        nodes: usize,
        /// The number of parents.
        found: usize,
    },
    /// A parent that is not before its child.
    #[error("parents[{node}] is {parent}, expected -1 (the context) or a node below {node}")]
    Parent {
        /// The node.
        node: usize,
        /// Its parent.
        parent: i64,
    },
    /// A node that cannot have been drafted so.
    #[error("draft_token_ids[{node}]: {source}")]
    Tree {
        /// The node.
        node: usize,
        /// What is wrong with it.
        source: TreeError,
    },
    /// Counters hold 32 bits of a position.
    #[error("position is {found}, expected a number of tokens below 2^32")]
    Position {
        /// The position.
        found: usize,
    },
    /// Columns that are no ascending token ids.
    #[error("{name} has {width} columns and {ids} ids for them; they must ascend, one for each")]
    Columns {
        /// The table.
        name: &'static str,
        /// The number of ids.
        ids: usize,
        /// The number of columns.
        width: usize,
    },
    /// A row that is no law.
    #[error(transparent)]
    Law(#[from] LawError),
}
