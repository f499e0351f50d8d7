//! The two things every rejection verifier is made of: the law a child was drawn from, and what is
//! left of the target's law once that child is rejected.

use std::borrow::Cow;

use crate::{DraftTree, Law, Number, Origin, TokenId};

/// The law that the child at `index` below `parent` was drawn from, given its earlier siblings.
pub(super) fn proposal<N: Number>(
    tree: &DraftTree<N>,
    parent: Option<usize>,
    index: usize,
) -> Cow<'_, Law<N>> {
    let children = tree.children(parent);
    let earlier: Vec<TokenId> = children[..index].iter().map(|&i| tree.token(i)).collect();
    let given = match tree.origin(children[index]) {
        Origin::Deterministic => None,
        Origin::Drawn(law) if earlier.is_empty() => return Cow::Borrowed(law),
        Origin::Drawn(law) => law.without(&earlier),
    };
    // A drawn child has a weight of its own, so its law is never used up by its siblings.
    Cow::Owned(given.unwrap_or_else(|| Law::one_hot(tree.token(children[index]))))
}

/// (scale * p - q)+, whose total is its mass before it is normalised; `None` where it is zero
/// everywhere.
pub(super) fn residual<N: Number>(scale: &N, p: &Law<N>, q: &Law<N>) -> Option<Law<N>> {
    let mut ids = Vec::new();
    let mut weights = Vec::new();
    let mut drawn = q.iter().peekable();
    for (token, weight) in p.iter() {
        while drawn.next_if(|(id, _)| *id < token).is_some() {}
        let mut rest = scale.clone() * (weight.clone() / p.total().clone());
        if let Some((_, weight)) = drawn.next_if(|(id, _)| *id == token) {
            rest = rest - weight.clone() / q.total().clone();
        }
        if rest > N::zero() {
            ids.push(token);
            weights.push(rest);
        }
    }
    Law::from_sparse(ids, weights).ok()
}
