//! Recursive rejection: the ratio test on a chain, tried child after child on a tree.
//!
//! **Theorem.** At a node with target law p, let the children be drawn one after the other, each
//! from a law q that may depend on its earlier siblings. Start with P = p. For each child x in that
//! order: accept it with probability min(1, P(x) / q(x)), else replace P by norm((P - q)+) and try
//! the next; after the last one emit y ~ P. Then the token that follows the node has law p.
//!
//! *Proof.* By induction from the last child: x ~ q is accepted as x with probability
//! min(P(x), q(x)); it is rejected with probability sum (P - q)+, and then the token has law
//! norm((P - q)+). Together P(x).
//!
//! The cases: one child is the chain of Leviathan et al. (arXiv:2211.17192); q without its earlier
//! draws is recursive rejection without replacement (arXiv:2401.06706, arXiv:2402.14160); a
//! deterministic child is a point mass, accepted with probability P(x), else zeroed and P
//! renormalised (EAGLE). They mix freely at one node.

use super::residual::{Proposal, residual};
use super::{Laws, Outcome, Walk, end};
use crate::chances::{Chances, Draw, Purpose};
use crate::{DraftTree, Law, LawError, Number};

/// Walks down while a child passes its ratio test.
///
/// # Errors
/// What `laws` reports.
pub fn verify<N: Number>(
    tree: &DraftTree<N>,
    laws: &mut dyn Laws<N>,
    position: usize,
    chances: &mut dyn Chances<N>,
) -> Result<Outcome, LawError> {
    let mut path = Vec::new();
    loop {
        let node = path.last().copied();
        let law = laws.at(node)?;
        let rest = match descend(tree, node, law, chances) {
            Step::Accepted(child) => {
                path.push(child);
                continue;
            }
            Step::Rejected(rest) => rest,
        };
        let here = position + path.len();
        let (purpose, law, walk) = match &rest {
            Some(rest) => (Purpose::Residual, rest, Walk::Rejected),
            None => (Purpose::Target, law, end(tree, &path)),
        };
        let next = chances.draw(Draw::at(purpose, node), here, law);
        return Ok(Outcome { path, next, walk });
    }
}

/// What the children of one node have come to.
enum Step<N> {
    Accepted(usize),
    /// All rejected (or none there); what they have left of the law, if they changed it.
    Rejected(Option<Law<N>>),
}

fn descend<N: Number>(
    tree: &DraftTree<N>,
    node: Option<usize>,
    law: &Law<N>,
    chances: &mut dyn Chances<N>,
) -> Step<N> {
    let mut rest: Option<Law<N>> = None;
    for (index, &child) in tree.children(node).iter().enumerate() {
        let token = tree.token(child);
        let target = rest.as_ref().unwrap_or(law);
        let drawn = Proposal::new(tree, node, index);
        let draw = Draw::at(Purpose::Accept, Some(child));
        if chances.accept(draw, &target.prob(token), &drawn.prob(token)) {
            return Step::Accepted(child);
        }
        // An empty residual means that p = q, where only rounding can reject: p stays.
        rest = residual(&N::one(), target, &drawn).or(rest);
    }
    Step::Rejected(rest)
}
