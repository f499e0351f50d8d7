//! How much of a draft can be accepted, for reports: one place with target law p and draft law q.

use crate::{Law, Number, TokenId};

/// Ratio test, one draft: sum min(p, q) = 1 - TV(p, q), the most that any exact rule accepts.
pub fn chain_acceptance<N: Number>(p: &Law<N>, q: &Law<N>) -> N {
    let least = |token| {
        let (p, q) = (p.prob(token), q.prob(token));
        if p < q { p } else { q }
    };
    sum(p.iter().map(|(token, _)| least(token)))
}

/// Sample and match with independent draws: sum p * q.
pub fn matching_acceptance<N: Number>(p: &Law<N>, q: &Law<N>) -> N {
    sum(p.iter().map(|(token, _)| p.prob(token) * q.prob(token)))
}

/// Sample and match with the same noise, at least (1 - TV) / (1 + TV).
///
/// The sum over x of 1 / (sum over y of max(p(y) / p(x), q(y) / q(x))): x wins both races iff it
/// arrives before every y at the larger of the two ratios (Daliri, Musco, Suresh,
/// arXiv:2408.07978). With tokens sorted by q / p the inner sum is one of p over those before x and
/// one of q over those behind.
pub fn coupled_acceptance<N: Number>(p: &Law<N>, q: &Law<N>) -> N {
    let sorted = by_ratio(q, p);
    let both = sorted.iter().map(|&token| (p.prob(token), q.prob(token)));
    // What only q can draw is behind every x.
    let (mut before, mut behind) = (N::zero(), N::one());
    let mut total = N::zero();
    for (p, q) in both {
        before = before + p.clone();
        behind = behind - q.clone();
        if q > N::zero() {
            total = total + N::one() / (before.clone() / p + behind.clone() / q);
        }
    }
    total
}

/// The most that any exact rule accepts of k independent drafts (optimal transport: Hu et al.,
/// arXiv:2502.18779).
///
/// min over sets S of 1 + p(S) - P(all drafts in S), by max-flow and min-cut between the drafts and
/// the emitted token. P = q(S)^k is convex in q(S), so the least is at a set {x: p(x) < c q(x)}.
pub fn best_acceptance<N: Number>(p: &Law<N>, q: &Law<N>, drafts: usize) -> N {
    let (mut p_mass, mut q_mass) = (N::zero(), N::zero());
    let mut best = N::one();
    for token in by_ratio(p, q) {
        p_mass = p_mass + p.prob(token);
        q_mass = q_mass + q.prob(token);
        let bound = N::one() + p_mass.clone() - power(&q_mass, drafts);
        if bound < best {
            best = bound;
        }
    }
    best
}

/// The same for drafts drawn without replacement, over all sets of tokens: 2^V of them, so for toys
/// of at most 20 tokens.
pub fn best_acceptance_without_replacement<N: Number>(p: &Law<N>, q: &Law<N>, drafts: usize) -> N {
    let tokens: Vec<TokenId> = q.iter().filter(|(_, w)| **w > N::zero()).map(|(t, _)| t).collect();
    assert!(tokens.len() <= 20, "{} tokens: 2^V sets are too many", tokens.len());
    let drafts = drafts.min(tokens.len());
    let bound = |set: u32| {
        let inside: Vec<TokenId> =
            (0..tokens.len()).filter(|i| set >> i & 1 == 1).map(|i| tokens[i]).collect();
        let mass = sum(inside.iter().map(|&token| p.prob(token)));
        N::one() + mass - all_inside(q, &inside, &mut Vec::new(), drafts)
    };
    let bounds = (0..1_u32 << tokens.len()).map(bound);
    bounds.fold(N::one(), |best, bound| if bound < best { bound } else { best })
}

/// The probability that `more` draws after `taken`, without replacement, all fall into `inside`.
fn all_inside<N: Number>(
    q: &Law<N>,
    inside: &[TokenId],
    taken: &mut Vec<TokenId>,
    more: usize,
) -> N {
    if more == 0 {
        return N::one();
    }
    let left = q.left(taken);
    let mut total = N::zero();
    for &token in inside {
        if !taken.contains(&token) {
            taken.push(token);
            let rest = all_inside(q, inside, taken, more - 1);
            taken.pop();
            total = total + q.weight(token) / left.clone() * rest;
        }
    }
    total
}

/// Tokens that `below` can draw, by rising `above` / `below`.
fn by_ratio<N: Number>(above: &Law<N>, below: &Law<N>) -> Vec<TokenId> {
    let possible = below.iter().filter(|(_, weight)| **weight > N::zero());
    let mut ratios: Vec<(N, TokenId)> =
        possible.map(|(token, weight)| (above.weight(token) / weight.clone(), token)).collect();
    ratios.sort_by(|a, b| a.partial_cmp(b).expect("finite weights"));
    ratios.into_iter().map(|(_, token)| token).collect()
}

fn power<N: Number>(base: &N, exponent: usize) -> N {
    (0..exponent).fold(N::one(), |product, _| product * base.clone())
}

fn sum<N: Number>(numbers: impl Iterator<Item = N>) -> N {
    N::sum(&numbers.collect::<Vec<N>>())
}
