//! The two things every rejection verifier is made of: the law a child was drawn from, and what is
//! left of the target's law once that child is rejected.

use std::borrow::Cow;

use crate::{DraftTree, Law, Number, Origin, TokenId};

/// The law a child was drawn from, given its earlier siblings.
pub(super) enum Proposal<'a, N: Number> {
    Point(TokenId),
    Law(Cow<'a, Law<N>>),
}

impl<'a, N: Number> Proposal<'a, N> {
    /// Of the child at `index` below `parent`.
    pub(super) fn of(tree: &'a DraftTree<N>, parent: Option<usize>, index: usize) -> Self {
        let children = tree.children(parent);
        let token = tree.token(children[index]);
        let earlier: Vec<TokenId> = children[..index].iter().map(|&i| tree.token(i)).collect();
        match tree.origin(children[index]) {
            Origin::Drawn(law) if earlier.is_empty() => Self::Law(Cow::Borrowed(law)),
            // The tree holds no drawn child without a weight, so `token` at least is left.
            Origin::Drawn(law) => {
                law.without(&earlier).map_or(Self::Point(token), |left| Self::Law(Cow::Owned(left)))
            }
            Origin::Deterministic => Self::Point(token),
        }
    }

    pub(super) fn prob(&self, token: TokenId) -> N {
        match self {
            Self::Point(point) if *point == token => N::one(),
            Self::Point(_) => N::zero(),
            Self::Law(law) => law.prob(token),
        }
    }

    /// (scale * P - q)+, whose total is its mass before it is normalised; `None` where it is zero
    /// everywhere.
    pub(super) fn residual(&self, scale: &N, target: &Law<N>) -> Option<Law<N>> {
        let mut ids = Vec::new();
        let mut weights = Vec::new();
        let scale = scale.clone() / target.total().clone();
        for (token, weight) in target.iter() {
            let rest = weight.clone() * scale.clone() - self.prob(token);
            if rest > N::zero() {
                ids.push(token);
                weights.push(rest);
            }
        }
        Law::from_sparse(ids, weights).ok()
    }
}
