//! LOSSY: typical acceptance (Medusa, Cai et al., arXiv:2401.10774). It does **not** keep the
//! target's law, and nothing chooses it unless it is asked for by this name.
//!
//! **Rule.** A drafted token x is good enough where p(x) > min(epsilon, delta * exp(-H(p))), H being
//! the entropy of the target's law p at its place. The longest path of tokens that are good enough
//! is accepted (the first of equally long ones), and the next token is drawn from the target's law
//! behind it.

use super::{Laws, Outcome, end};
use crate::chances::{Draw, Draws, Purpose};
use crate::{DraftTree, Law, LawError, math};

/// The threshold of a peaked law, epsilon in Medusa's code.
pub const EPSILON: f64 = 0.09;

/// What shrinks with the entropy, delta in Medusa's code. (Its paper has the root of epsilon.)
pub const DELTA: f64 = 0.3;

/// What Medusa's code adds to p inside the logarithm.
const SMALL: f64 = 1e-5;

/// The probability that a drafted token must exceed under the target's law `p`.
pub fn threshold(p: &Law) -> f64 {
    let term = |weight: &f64| {
        let x = weight / p.total();
        x * math::ln(x + SMALL)
    };
    let terms: Vec<f64> = p.iter().map(|(_, weight)| term(weight)).collect();
    EPSILON.min(DELTA * f64::from(math::exp(math::sum(&terms) as f32)))
}

/// Accepts the longest path of good enough tokens.
///
/// # Errors
/// What `laws` reports.
pub fn verify(
    tree: &DraftTree,
    laws: &mut dyn Laws,
    position: usize,
    draws: &mut dyn Draws<f64>,
) -> Result<Outcome, LawError> {
    let mut good = vec![false; tree.len()];
    let mut best: Option<usize> = None;
    // Parents come before children, so each place is visited once, and after its parent.
    for place in std::iter::once(None).chain((0..tree.len()).map(Some)) {
        if tree.children(place).is_empty() || place.is_some_and(|node| !good[node]) {
            continue;
        }
        let p = laws.at(place)?;
        let least = threshold(p);
        for &child in tree.children(place) {
            good[child] = p.prob(tree.token(child)) > least;
            let longer = best.is_none_or(|best| tree.depth(child) > tree.depth(best));
            if good[child] && longer {
                best = Some(child);
            }
        }
    }
    let path = best.map(|node| tree.path_to(node)).unwrap_or_default();
    let law = laws.at(best)?;
    let next = draws.draw(Draw::at(Purpose::Target, best), position + path.len(), law);
    Ok(Outcome { walk: end(tree, &path), path, next })
}
