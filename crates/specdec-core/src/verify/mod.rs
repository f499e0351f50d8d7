//! Walking the draft tree with the target's law: which tokens stay, and which one comes next.
//!
//! What every verifier here owes, but for the one that says lossy: whatever the drafter, the tokens
//! it emits (the accepted path and the token drawn after it) have exactly the law that plain
//! decoding gives them, and nothing is asked of a law that plain decoding would not have asked.
//! One theorem a file.

pub mod kseq;
pub mod lossy_typical;
pub mod matching;
mod path_laws;
mod residual;
pub mod standard;
pub mod traversal;

pub use path_laws::PathLaws;

use crate::chances::{Coupled, Draws, Independent};
use crate::rng::Key;
use crate::{DraftTree, Law, LawError, Number, TokenId};

/// The target's laws at the places of a tree, built when asked for: unvisited nodes cost nothing.
pub trait Laws<N = f64> {
    /// The law of the token that follows `node` (`None`: the context). [`traversal`] asks for a
    /// place again when it comes back to it; [`PathLaws`] makes each law once all the same.
    ///
    /// # Errors
    /// The row of logits at that place is no law.
    fn at(&mut self, node: Option<usize>) -> Result<&Law<N>, LawError>;
}

/// Why a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Walk {
    /// No child of the last node was accepted.
    Rejected,
    /// There was nothing to accept: the tree is empty.
    NoDraft,
    /// The path reached a leaf.
    AllAccepted,
}

/// What a step emits: the tokens of `path`, then `next`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Accepted nodes, from a child of the context downwards.
    pub path: Vec<usize>,
    /// The token drawn after them: corrected after a rejection, else a bonus.
    pub next: TokenId,
    /// Why the walk ended.
    pub walk: Walk,
}

/// How a tree is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// [`matching`] on one-hot laws: descend while the arg max is proposed.
    Greedy,
    /// [`matching`] with the noise of [`Coupled`]: the text depends on seed and target alone.
    Coupled,
    /// [`standard`] with [`Independent`] numbers: ratio test, residuals.
    Standard,
    /// [`traversal`] with [`Independent`] numbers; on chains it is block verification.
    Traversal,
    /// [`lossy_typical`]: **not exact**.
    LossyTypical,
}

impl Method {
    /// The numbers with which the draft of a step must be drawn, after `committed` tokens: for
    /// [`Method::Coupled`] the noise that the target sees, else numbers of their own.
    pub fn draws(self, committed: usize, key: Key) -> Box<dyn Draws<f64> + Send> {
        match self {
            Self::Greedy | Self::Coupled => Box::new(Coupled { key }),
            Self::Standard | Self::Traversal | Self::LossyTypical => {
                Box::new(Independent { key, committed: committed as u32 })
            }
        }
    }

    /// Verifies `tree` after a context of `position` tokens, with the numbers of `key`.
    ///
    /// Method and randomness belong together, so they are chosen together: a ratio test on coupled
    /// noise would be biased.
    ///
    /// # Errors
    /// What `laws` reports.
    pub fn verify(
        self,
        tree: &DraftTree,
        laws: &mut dyn Laws,
        position: usize,
        key: Key,
    ) -> Result<Outcome, LawError> {
        let mut chances = Independent { key, committed: position as u32 };
        match self {
            Self::Greedy | Self::Coupled => {
                matching::verify(tree, laws, position, &mut Coupled { key })
            }
            Self::Standard => standard::verify(tree, laws, position, &mut chances),
            Self::Traversal => traversal::verify(tree, laws, position, &mut chances),
            Self::LossyTypical => lossy_typical::verify(tree, laws, position, &mut chances),
        }
    }
}

/// Why a walk that was not rejected ended after `path`.
fn end<N: Number>(tree: &DraftTree<N>, path: &[usize]) -> Walk {
    let children = tree.children(path.last().copied());
    match (children.is_empty(), path.is_empty()) {
        (false, _) => Walk::Rejected,
        (true, true) => Walk::NoDraft,
        (true, false) => Walk::AllAccepted,
    }
}
