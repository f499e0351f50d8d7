//! k-SEQ: one test for k independent drafts of the same token (Sun et al.,
//! arXiv:2310.15141). A tool for reports: the step verifies trees with [`standard`](super::standard)
//! and [`traversal`](super::traversal).
//!
//! **Theorem.** Let `x_1 .. x_k` be drawn independently from q. Accept the first `x_i` with
//! `u_i * rho * q(x_i) < p(x_i)`. With b = sum over x of min(q(x), p(x) / rho) one draft is accepted
//! with probability b, and some draft with probability A = 1 - (1 - b)^k; if none is, emit
//! y ~ norm(p - min(q, p / rho) * A / b). The token has law p for every rho with A <= rho * b, and A
//! is largest at the least such rho, where A = rho * b. A is within 1 - 1/e of the best possible.

use crate::chances::{Chances, Draw, Purpose};
use crate::{Law, Number, TokenId};

/// The laws of one place, and how hard its drafts are tested.
#[derive(Debug, Clone)]
pub struct KSeq<'a, N> {
    p: &'a Law<N>,
    q: &'a Law<N>,
    rho: N,
    drafts: usize,
}

impl<'a, N: Number> KSeq<'a, N> {
    /// Target law `p`, draft law `q`, number of drafts k, and `rho`, at least [`best_rho`].
    pub fn new(p: &'a Law<N>, q: &'a Law<N>, drafts: usize, rho: N) -> Self {
        Self { p, q, rho, drafts }
    }

    /// The index of the accepted draft (`None`: none is) and the token at `position`. Draft i is
    /// tested as node i.
    pub fn choose(
        &self,
        drafts: &[TokenId],
        position: usize,
        chances: &mut dyn Chances<N>,
    ) -> (Option<usize>, TokenId) {
        for (i, &token) in drafts.iter().enumerate() {
            let test = self.rho.clone() * self.q.prob(token);
            if chances.accept(Draw::at(Purpose::Accept, Some(i)), &self.p.prob(token), &test) {
                return (Some(i), token);
            }
        }
        let residual = self.residual();
        let law = residual.as_ref().unwrap_or(self.p);
        (None, chances.draw(Draw::at(Purpose::Residual, None), position, law))
    }

    /// b: the probability that one draft is accepted.
    pub fn beta(&self) -> N {
        let parts: Vec<N> = self.p.iter().map(|(token, _)| self.part(token)).collect();
        N::sum(&parts)
    }

    /// A: the probability that some draft is accepted.
    pub fn acceptance(&self) -> N {
        self.beta() * self.tries()
    }

    /// The law of the token if no draft is accepted; `None` where that cannot happen.
    pub fn residual(&self) -> Option<Law<N>> {
        let tries = self.tries();
        self.p.reweighted(|token, _| {
            let left = self.p.prob(token) - self.part(token) * tries.clone();
            // Below 0 by rounding only, if rho is large enough.
            if left > N::zero() { left } else { N::zero() }
        })
    }

    /// min(q(x), p(x) / rho)
    fn part(&self, token: TokenId) -> N {
        let (q, p) = (self.q.prob(token), self.p.prob(token) / self.rho.clone());
        if q < p { q } else { p }
    }

    /// A / b as a sum, which has a limit at b = 0: 1 + (1 - b) + (1 - b)^2 + ..
    fn tries(&self) -> N {
        let miss = N::one() - self.beta();
        let next = |power: &N| Some(power.clone() * miss.clone());
        let powers: Vec<N> =
            std::iter::successors(Some(N::one()), next).take(self.drafts).collect();
        N::sum(&powers)
    }
}

/// The least rho with A <= rho * b, by bisection in [1, k]. If p and q are disjoint every rho does,
/// as nothing is ever accepted: 1.
pub fn best_rho(p: &Law, q: &Law, drafts: usize) -> f64 {
    let (mut low, mut high) = (1.0, drafts.max(1) as f64);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return high;
        }
        let at = KSeq::new(p, q, drafts, middle);
        if at.acceptance() <= middle * at.beta() { high = middle } else { low = middle }
    }
}
