//! Where proposals come from: [`Drafter`], and the drafters that need no model.

mod ngram;

pub use ngram::Ngram;

use crate::{DraftTree, TokenId};

/// How much may be proposed in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Nodes of the tree.
    pub nodes: usize,
    /// Tokens on its longest path.
    pub depth: usize,
}

/// A source of proposals for one request.
pub trait Drafter {
    /// A tree that continues `context` (prompt + output), within `budget`. It may be empty.
    fn propose(&mut self, context: &[TokenId], budget: Budget) -> DraftTree;

    /// The tokens by which the context has grown since the last call to `propose`.
    fn commit(&mut self, tokens: &[TokenId]);

    /// Forgets everything: the next context belongs to another request.
    fn reset(&mut self);
}
