//! Where proposals come from: [`Drafter`], and the drafters that need no model.

mod ngram;

pub use ngram::Ngram;

use crate::rng::Key;
use crate::{DraftTree, History, Method, Processors, TokenId};

/// How much may be proposed in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Nodes of the tree.
    pub nodes: usize,
    /// Tokens on its longest path.
    pub depth: usize,
}

/// How a request's tokens are chosen, for drafters that draw theirs likewise.
#[derive(Debug, Clone, Copy)]
pub struct Rule<'a> {
    /// The processors of the target's law.
    pub processors: &'a Processors,
    /// What they know of the context.
    pub history: &'a History,
    /// The rule of acceptance: it says whether tokens are drawn, and with which randomness.
    pub method: Method,
    /// Whose randomness.
    pub key: Key,
}

/// One request's share of a call to [`Drafter::propose`].
#[derive(Debug)]
pub struct Ask<'a> {
    /// Number of the request, its own until [`Drafter::release`].
    pub id: u64,
    /// Prompt and output; while the prompt is being read, the part that the target has seen.
    pub context: &'a [TokenId],
    /// What the whole tree may hold; without depth or nodes, nothing is to be proposed.
    pub budget: Budget,
    /// Tokens that the output is expected to resemble; often none.
    pub prediction: &'a [TokenId],
    /// How its tokens are chosen.
    pub rule: Rule<'a>,
    /// The proposals. What other sources have put there stays as it is, in its order.
    pub tree: DraftTree,
}

/// A drafter could not do its work. The step goes on without it.
#[derive(Debug, thiserror::Error)]
#[error("the drafter failed: {0}")]
pub struct DraftError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// A source of proposals for all requests of an engine.
///
/// Several sources extend the same trees one after the other. What keeps sampled trees exact: a
/// source that draws tokens goes before those that propose by rule, and a source by rule adds only
/// tokens that are not yet among a node's children.
pub trait Drafter: Send {
    /// Extends the tree of each ask within its budget; all requests of a step come in one call.
    ///
    /// # Errors
    /// When drafts cannot be made. Trees may have been extended in part, and stay exact.
    fn propose(&mut self, asks: &mut [Ask<'_>]) -> Result<(), DraftError>;

    /// The context of request `id` has grown by the tokens of `path`, nodes of the tree of its last
    /// ask, and by the one drawn after them (by none while its prompt is being read).
    ///
    /// # Errors
    /// As [`Drafter::propose`].
    fn commit(&mut self, id: u64, path: &[usize]) -> Result<(), DraftError>;

    /// Request `id` has ended, or was set aside and will ask again with its whole context; what was
    /// kept for it can go.
    fn release(&mut self, id: u64);
}
