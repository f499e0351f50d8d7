//! The verifiers on rows of probabilities and a seed, for engines that compute them elsewhere.
//!
//! A chain of k drafted tokens has k + 1 target rows; a tree of n nodes has n + 1, row 0 after the
//! context and row i + 1 after node i. Draft row i is the law that node i was drawn from *before* its
//! earlier siblings were taken out; a token chosen by a rule that looked at the context only has a
//! one-hot row. Every row is checked before anything is drawn; a sum that is off by rounding is put
//! right by dividing by it.

mod error;
mod rows;

use std::sync::Arc;

pub use error::PrimitiveError;
pub use rows::{Rows, Table};

use crate::chances::{Coupled, Draw, Draws, Purpose};
use crate::rng::Key;
use crate::{DraftTree, Law, LawError, Laws, Method, Origin, TokenId};

/// Accepted tokens and the one drawn after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The accepted tokens, then the token drawn after them.
    pub token_ids: Vec<TokenId>,
    /// How many of them were accepted.
    pub num_accepted: usize,
}

/// What was drafted.
#[derive(Debug, Clone, Copy)]
pub struct Drafted<'a> {
    /// The token of each node.
    pub token_ids: &'a [i64],
    /// The node before each node, -1 for the context; parents before children, siblings in the
    /// order they were drawn.
    pub parents: &'a [i64],
}

/// Verifies `drafted` after a context of `position` tokens, with the numbers of `key`.
///
/// [`Method::Greedy`] takes the likeliest token of each target row, the lowest id on ties.
///
/// # Errors
/// Shapes that do not fit, a row that is no law, a token outside the vocabulary or one that its
/// draft row rules out, a parent that is not before its child, a position beyond 2^32.
pub fn verify(
    target: &Table,
    draft: &Table,
    drafted: Drafted,
    method: Method,
    position: usize,
    key: Key,
) -> Result<Verified, PrimitiveError> {
    let nodes = drafted.token_ids.len();
    if drafted.parents.len() != nodes {
        return Err(PrimitiveError::Parents { nodes, found: drafted.parents.len() });
    }
    target.expect(nodes + 1, None)?;
    draft.expect(nodes, Some(target))?;
    check_position(position)?;
    let tree = tree(draft, drafted)?;
    let greedy = method == Method::Greedy;
    let mut laws = Targets { table: target, greedy, laws: vec![None; nodes + 1] };
    let outcome = method.verify(&tree, &mut laws, position, key)?;
    let mut token_ids: Vec<TokenId> = outcome.path.iter().map(|&node| tree.token(node)).collect();
    token_ids.push(outcome.next);
    Ok(Verified { num_accepted: outcome.path.len(), token_ids })
}

/// A token of the only row of `probs`, by the noise of [`Coupled`] at `position`.
///
/// # Errors
/// As [`verify`].
pub fn sample(probs: &Table, position: usize, key: Key) -> Result<TokenId, PrimitiveError> {
    probs.expect(1, None)?;
    check_position(position)?;
    let law = probs.law(0)?;
    Ok(Coupled { key }.draw(Draw::at(Purpose::Target, None), position, &law))
}

/// Counters hold 32 bits of a committed length.
fn check_position(position: usize) -> Result<(), PrimitiveError> {
    match u32::try_from(position) {
        Ok(_) => Ok(()),
        Err(_) => Err(PrimitiveError::Position { found: position }),
    }
}

fn tree(draft: &Table, drafted: Drafted) -> Result<DraftTree, PrimitiveError> {
    let mut tree = DraftTree::new();
    for (node, (&token, &parent)) in drafted.token_ids.iter().zip(drafted.parents).enumerate() {
        let vocab = draft.vocab();
        let known = TokenId::try_from(token).ok().filter(|&id| (id as usize) < vocab);
        let token = known.ok_or(PrimitiveError::Token { node, token, vocab })?;
        let before = usize::try_from(parent).ok().filter(|&parent| parent < node);
        if before.is_none() && parent != -1 {
            return Err(PrimitiveError::Parent { node, parent });
        }
        let origin = Origin::Drawn(Arc::new(draft.law(node)?));
        tree.push(before, token, origin).map_err(|source| PrimitiveError::Tree { node, source })?;
    }
    Ok(tree)
}

/// Target rows, made into laws where the walk visits.
struct Targets<'a> {
    table: &'a Table<'a>,
    greedy: bool,
    laws: Vec<Option<Law>>,
}

impl Laws for Targets<'_> {
    fn at(&mut self, node: Option<usize>) -> Result<&Law, LawError> {
        let row = node.map_or(0, |node| node + 1);
        let law = match self.laws[row].take() {
            Some(law) => law,
            None if self.greedy => Law::one_hot(self.table.likeliest(row)),
            None => self.table.law(row)?,
        };
        Ok(self.laws[row].insert(law))
    }
}
