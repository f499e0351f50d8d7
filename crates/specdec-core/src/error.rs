//! What can go wrong, with the values needed to say so.

use std::borrow::Cow;

use crate::TokenId;

/// A row of logits or weights that is no law.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LawError {
    /// A logit is NaN or plus infinity.
    #[error(
        "logit of token {token} is {value}, expected a finite number or -inf; \
         the model's weights or its input are damaged"
    )]
    Logit {
        /// The first token whose logit is unusable.
        token: TokenId,
        /// The logit found.
        value: f32,
    },
    /// A weight is NaN, infinite or negative.
    #[error("weight of token {token} is {value}, expected a finite number that is not negative")]
    Weight {
        /// The first token whose weight is unusable.
        token: TokenId,
        /// The weight found.
        value: String,
    },
    /// No token has a positive probability.
    #[error("none of {len} tokens is possible; at least one must have a positive probability")]
    NoToken {
        /// The number of tokens looked at.
        len: usize,
    },
    /// Sparse ids are not strictly ascending.
    #[error("token ids of a sparse law must ascend, found {next} after {previous}")]
    Order {
        /// The id before.
        previous: TokenId,
        /// The id that should have been larger.
        next: TokenId,
    },
    /// Ids and weights differ in number.
    #[error("{ids} token ids for {weights} weights; there must be one weight for each id")]
    Length {
        /// The number of ids.
        ids: usize,
        /// The number of weights.
        weights: usize,
    },
    /// A row of logits with fewer entries than the vocabulary has tokens.
    #[error("a row of {len} logits for a vocabulary of {vocab}; there must be one for each token")]
    Row {
        /// The number of logits.
        len: usize,
        /// The number of tokens.
        vocab: usize,
    },
    /// A token outside the vocabulary.
    #[error("token {token} is outside the vocabulary of {len}")]
    Token {
        /// The token asked for.
        token: TokenId,
        /// The size of the vocabulary.
        len: usize,
    },
}

/// A proposal that does not fit into a draft tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The parent is not in the tree (yet).
    #[error("parent {parent} does not exist, the tree has {len} nodes; push parents first")]
    Parent {
        /// The parent asked for.
        parent: usize,
        /// The number of nodes so far.
        len: usize,
    },
    /// The parent has this child already.
    #[error("token {token} is already a child of this node (node {node}); siblings must differ")]
    Duplicate {
        /// The token proposed twice.
        token: TokenId,
        /// The node that holds it.
        node: usize,
    },
    /// The token cannot have been drawn from the law it comes with.
    #[error("token {token} has probability 0 in the law it is said to be drawn from")]
    Impossible {
        /// The token.
        token: TokenId,
    },
}

/// A parameter outside its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} is {found}, expected {expected}")]
pub struct ParameterError {
    /// The name of the parameter, as users write it.
    pub name: &'static str,
    /// The value found.
    pub found: String,
    /// The values allowed, in words.
    pub expected: Cow<'static, str>,
}

impl ParameterError {
    /// `name` is `found`, but must be `expected`.
    pub fn new(name: &'static str, found: String, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { name, found, expected: expected.into() }
    }
}
