//! The two things every rejection verifier is made of: the law a child was drawn from, and what is
//! left of the target's law once that child is rejected.

use crate::{DraftTree, Law, Number, Origin, TokenId};

/// The law that a child was drawn from, given its earlier siblings. A view: nothing is copied.
pub(super) enum Proposal<'a, N> {
    /// All of it on one token.
    Point(TokenId),
    /// A law without the tokens of earlier siblings, and the total that leaves.
    Drawn { law: &'a Law<N>, taken: Vec<TokenId>, total: N },
}

impl<'a, N: Number> Proposal<'a, N> {
    /// Of the child at `index` below `parent`.
    pub(super) fn new(tree: &'a DraftTree<N>, parent: Option<usize>, index: usize) -> Self {
        let children = tree.children(parent);
        match tree.origin(children[index]) {
            Origin::Deterministic => Self::Point(tree.token(children[index])),
            Origin::Independent(law) => {
                Self::Drawn { law, taken: Vec::new(), total: law.total().clone() }
            }
            Origin::Drawn(law) => {
                let taken: Vec<TokenId> =
                    children[..index].iter().map(|&i| tree.token(i)).collect();
                // Positive: the child itself has a weight that its siblings have not taken.
                let total = law.left(&taken);
                Self::Drawn { law, taken, total }
            }
        }
    }

    /// Probability of `token`.
    pub(super) fn prob(&self, token: TokenId) -> N {
        match self {
            Self::Point(only) if *only == token => N::one(),
            Self::Point(_) => N::zero(),
            Self::Drawn { taken, .. } if taken.contains(&token) => N::zero(),
            Self::Drawn { law, total, .. } => law.weight(token) / total.clone(),
        }
    }
}

/// (scale * p - q)+, whose total is its mass before it is normalised; `None` where it is zero
/// everywhere.
pub(super) fn residual<N: Number>(scale: &N, p: &Law<N>, q: &Proposal<N>) -> Option<Law<N>> {
    match q {
        Proposal::Point(token) => p.excess(scale, &Law::one_hot(*token), &[], &N::one()),
        Proposal::Drawn { law, taken, total } => p.excess(scale, law, taken, total),
    }
}
