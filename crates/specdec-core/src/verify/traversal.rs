//! Traversal verification of trees (arXiv:2505.12398); on a chain it is block verification (Sun et
//! al., arXiv:2403.10444). Both decide bottom-up. On a chain that accepts at least as much as top-down
//! rejection; on trees it nearly always does, but there are laws on which it accepts a little less.
//!
//! **Rule.** Every node carries an acceptance a and a target law M: at the context a = 1 and M = p.
//! Going down to a child x drawn from q (given its earlier siblings), a(x) = min(1, a M(x) / q(x)).
//! A leaf is accepted, with its whole path, with probability a; then the next token is drawn from
//! its M. Otherwise the leaf is cut off, and at its parent R = (a M - q)+, S = sum R,
//! a <- S / (S + 1 - a), M <- R / S; the parent goes on with its next child, or is a leaf itself.
//! The context has a = 1 throughout, so something is always accepted.
//!
//! **Theorem.** The accepted tokens and the next one have the law of plain decoding. (By induction
//! over the leaves: a M is, at every moment, the part of the target's law at a node that has not
//! been given away below it.)
//!
//! On a chain, a at depth i is min(1, a p / q) taken along the path, and the acceptance of a node
//! whose child was cut off is S / (S + 1 - a): the h of block verification.

use super::residual::{Proposal, residual};
use super::{Laws, Outcome, Walk, end};
use crate::chances::{Chances, Draw, Purpose};
use crate::{DraftTree, Law, LawError, Number};

/// Walks to the first leaf, and from there up and on until a leaf is accepted.
///
/// # Errors
/// What `laws` reports.
pub fn verify<N: Number>(
    tree: &DraftTree<N>,
    laws: &mut dyn Laws<N>,
    position: usize,
    chances: &mut dyn Chances<N>,
) -> Result<Outcome, LawError> {
    let mut below: Vec<Place<N>> = Vec::new();
    let mut here = Place::new(None, N::one());
    loop {
        if here.tried < tree.children(here.node).len() {
            let child = here.child(tree, laws)?;
            below.push(std::mem::replace(&mut here, child));
            continue;
        }
        let draw = Draw::at(Purpose::Accept, here.node);
        if !below.is_empty() && !chances.accept(draw, &here.acceptance, &N::one()) {
            here = below.pop().expect("the context is accepted without a draw");
            here.cut(tree, laws)?;
            continue;
        }
        let path: Vec<usize> = below.iter().skip(1).chain([&here]).filter_map(|p| p.node).collect();
        let (purpose, walk) = match here.rest {
            Some(_) => (Purpose::Residual, Walk::Rejected),
            None => (Purpose::Target, end(tree, &path)),
        };
        let law = here.law(laws)?;
        let next = chances.draw(Draw::at(purpose, here.node), position + path.len(), law);
        return Ok(Outcome { path, next, walk });
    }
}

/// A node on the way to the current leaf.
struct Place<N> {
    node: Option<usize>,
    acceptance: N,
    /// What its rejected children have left of the target's law, if they changed it.
    rest: Option<Law<N>>,
    /// Children cut off so far; the next one is being visited.
    tried: usize,
}

impl<N: Number> Place<N> {
    fn new(node: Option<usize>, acceptance: N) -> Self {
        Self { node, acceptance, rest: None, tried: 0 }
    }

    fn law<'a>(&'a self, laws: &'a mut dyn Laws<N>) -> Result<&'a Law<N>, LawError> {
        match &self.rest {
            Some(rest) => Ok(rest),
            None => laws.at(self.node),
        }
    }

    /// The next child not yet cut off.
    fn child(&self, tree: &DraftTree<N>, laws: &mut dyn Laws<N>) -> Result<Self, LawError> {
        let child = tree.children(self.node)[self.tried];
        let token = tree.token(child);
        let drawn = Proposal::new(tree, self.node, self.tried).prob(token);
        let mass = self.acceptance.clone() * self.law(laws)?.prob(token);
        // In this order, so that mass 0 is never accepted, even where `drawn` has underflown.
        let acceptance = if mass <= N::zero() {
            N::zero()
        } else if mass < drawn {
            mass / drawn
        } else {
            N::one()
        };
        Ok(Self::new(Some(child), acceptance))
    }

    /// Takes the child in question off, with its part of the law.
    fn cut(&mut self, tree: &DraftTree<N>, laws: &mut dyn Laws<N>) -> Result<(), LawError> {
        let drawn = Proposal::new(tree, self.node, self.tried);
        let rest = residual(&self.acceptance, self.law(laws)?, &drawn);
        self.tried += 1;
        let missing = N::one() - self.acceptance.clone();
        if missing > N::zero() {
            let mass = rest.as_ref().map_or_else(N::zero, |rest| rest.total().clone());
            self.acceptance = mass.clone() / (mass + missing);
        }
        self.rest = rest.or(self.rest.take());
        Ok(())
    }
}
