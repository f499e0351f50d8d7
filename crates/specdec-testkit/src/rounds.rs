//! Whole rounds (draft, verify, emit) on toy models, and the law of the text that they generate.

use std::collections::BTreeMap;

use specdec_core::chances::Chances;
use specdec_core::verify::{PathLaws, matching, standard, traversal};
use specdec_core::{DraftTree, Law, LawError, Laws, Number, Outcome, TokenId};

use crate::drafts::{Drafts, prefix};
use crate::enumerate::enumerate;
use crate::rational::Rational;
use crate::toy::{Toy, law};

/// A verifier that draws independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verifier {
    /// Sample and match.
    Matching,
    /// Recursive rejection.
    Standard,
    /// Bottom-up.
    Traversal,
}

impl Verifier {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Matching, Self::Standard, Self::Traversal];

    /// Verifies `tree`.
    ///
    /// # Errors
    /// What `laws` reports.
    pub fn verify<N: Number, C: Chances<N>>(
        self,
        tree: &DraftTree<N>,
        laws: &mut dyn Laws<N>,
        position: usize,
        chances: &mut C,
    ) -> Result<Outcome, LawError> {
        match self {
            Self::Matching => matching::verify(tree, laws, position, chances),
            Self::Standard => standard::verify(tree, laws, position, chances),
            Self::Traversal => traversal::verify(tree, laws, position, chances),
        }
    }
}

/// The target's laws at the places of a tree after `context`, in buffers of any content.
pub fn toy_laws<'a, N: Number + From<u32>>(
    toy: &'a Toy,
    context: &'a [TokenId],
    tree: &'a DraftTree<N>,
    buffers: &'a mut Vec<Law<N>>,
) -> impl Laws<N> + 'a {
    PathLaws::new(tree, buffers, move |node, out| {
        *out = law(&toy.target(&prefix(context, tree, node)));
        Ok(())
    })
}

/// The tokens that one round emits after `context`.
pub fn round<N: Number + From<u32>, C: Chances<N>>(
    toy: &Toy,
    drafts: &Drafts,
    verifier: Verifier,
    context: &[TokenId],
    chances: &mut C,
) -> Vec<TokenId> {
    let tree = drafts.propose(toy, context, chances);
    let mut buffers = Vec::new();
    let mut laws = toy_laws(toy, context, &tree, &mut buffers);
    let outcome =
        verifier.verify(&tree, &mut laws, context.len(), chances).expect("toy laws are laws");
    emitted(&tree, &outcome)
}

/// The tokens of an outcome: the accepted ones, and the one drawn after them.
pub fn emitted<N>(tree: &DraftTree<N>, outcome: &Outcome) -> Vec<TokenId> {
    let accepted = outcome.path.iter().map(|&node| tree.token(node));
    accepted.chain([outcome.next]).collect()
}

/// The exact law of the first `length` tokens that rounds of `verifier` generate.
///
/// Rounds depend on each other through the committed tokens alone, so each committed prefix is
/// enumerated once: prefixes leave the map in lexicographic order, and so after all that lead to
/// them.
pub fn generated(
    toy: &Toy,
    drafts: &Drafts,
    verifier: Verifier,
    length: usize,
) -> BTreeMap<Vec<TokenId>, Rational> {
    let mut done = BTreeMap::new();
    let mut open = BTreeMap::from([(Vec::new(), Rational::one())]);
    while let Some((context, weight)) = open.pop_first() {
        let law = enumerate(|branches| round(toy, drafts, verifier, &context, branches));
        for (tokens, p) in law {
            let mut text = [context.as_slice(), &tokens].concat();
            text.truncate(length);
            let target = if text.len() == length { &mut done } else { &mut open };
            *target.entry(text).or_insert_with(Rational::zero) += weight.clone() * p;
        }
    }
    done
}
