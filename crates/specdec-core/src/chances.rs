//! [`Draws`] and [`Chances`]: where a verifier gets its randomness from. Production has two families
//! of keyed numbers, [`Independent`] and [`Coupled`]; tests put an enumerator of all branches in
//! their place.

use crate::rng::{Counter, Key, philox, uniform};
use crate::{Law, Number, TokenId, math};

/// What a number is drawn for. Numbers of different purposes never share a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// The ratio test of a drafted token.
    Accept = 1,
    /// A token from what the rejected children have left of the target's law.
    Residual = 2,
    /// A token from the target's own law: the one after a fully accepted path, and every token of
    /// the matching verifier.
    Target = 3,
    /// A token from a draft law.
    Draft = 4,
}

/// Purpose word of [`Coupled`], whose counters must differ from all of [`Independent`]'s.
const COUPLED: u32 = 5;

/// One draw within a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Draw {
    /// What for.
    pub purpose: Purpose,
    /// 0 for the context, i + 1 for node i of the tree.
    pub node: u32,
    /// Which one, where a purpose needs several numbers at one node.
    pub draw: u32,
}

impl Draw {
    /// The first draw for `purpose` at `node` (`None`: the context).
    pub fn at(purpose: Purpose, node: Option<usize>) -> Self {
        Self { purpose, node: node.map_or(0, |i| i as u32 + 1), draw: 0 }
    }
}

/// Tokens drawn from laws: all the randomness of drafters and of the matching verifier.
pub trait Draws<N> {
    /// A token drawn from `law`; `position` is the absolute index (from 0) of that token in
    /// prompt + output.
    fn draw(&mut self, draw: Draw, position: usize, law: &Law<N>) -> TokenId;

    /// Up to `count` different tokens, none of `taken`, drawn one after the other from what `law`
    /// has left then; fewer where it runs out. The first is drawn as `draw`, the next as the
    /// draw after it, and so on.
    fn draw_without(
        &mut self,
        draw: Draw,
        position: usize,
        law: &Law<N>,
        taken: &[TokenId],
        count: usize,
    ) -> Vec<TokenId>
    where
        N: Number,
    {
        let mut all = taken.to_vec();
        for i in 0..count as u32 {
            let Some(left) = law.without(&all) else { break };
            all.push(self.draw(Draw { draw: draw.draw + i, ..draw }, position, &left));
        }
        all.split_off(taken.len())
    }
}

/// Draws and ratio tests, all independent of each other: the randomness of rejection verifiers.
///
/// [`Coupled`] is no `Chances` on purpose: a residual drawn with the noise that the draft has used
/// is biased, so the two families must not meet.
pub trait Chances<N>: Draws<N> {
    /// True with probability min(1, p / q); never where p is 0.
    fn accept(&mut self, draw: Draw, p: &N, q: &N) -> bool;
}

/// Numbers for the rejection family: one for each (committed length, purpose, node, draw).
///
/// The committed length grows with every step, so no counter is used twice. Keyed by position alone
/// it would be, after a rejection, and verifiers that decide bottom-up would be biased.
#[derive(Debug, Clone, Copy)]
pub struct Independent {
    /// Whose numbers.
    pub key: Key,
    /// Tokens of prompt + output at the start of the step.
    pub committed: u32,
}

impl Independent {
    /// The counter of a draw; all distinct for distinct (sample, committed, draw).
    pub fn counter(&self, draw: Draw) -> Counter {
        debug_assert!(draw.draw < 1 << 24, "draw index {} does not fit 24 bits", draw.draw);
        [(draw.purpose as u32) << 24 | draw.draw, draw.node, self.committed, self.key.sample]
    }

    /// The number of a draw, in (0, 1).
    pub fn uniform(&self, draw: Draw) -> f64 {
        let [low, high, ..] = philox(self.counter(draw), self.key.words());
        uniform(low, high)
    }
}

impl Chances<f64> for Independent {
    fn accept(&mut self, draw: Draw, p: &f64, q: &f64) -> bool {
        accept(self.uniform(draw), *p, *q)
    }
}

impl Draws<f64> for Independent {
    fn draw(&mut self, draw: Draw, _position: usize, law: &Law<f64>) -> TokenId {
        invert(self.uniform(draw), law)
    }

    fn draw_without(
        &mut self,
        draw: Draw,
        _position: usize,
        law: &Law<f64>,
        taken: &[TokenId],
        count: usize,
    ) -> Vec<TokenId> {
        let mut all = taken.to_vec();
        for i in 0..count as u32 {
            let left = law.left(&all);
            if left <= 0.0 {
                break;
            }
            let u = self.uniform(Draw { draw: draw.draw + i, ..draw });
            all.push(law.quantile(u * left, &all));
        }
        all.split_off(taken.len())
    }
}

/// The ratio test, without a division: u * q < p. Strict, so that p = 0 never passes.
pub fn accept(u: f64, p: f64, q: f64) -> bool {
    u * q < p
}

/// The token at quantile `u` in (0, 1) of `law`: the first whose cumulated weight exceeds
/// u * total. Never one of weight 0.
pub fn invert(u: f64, law: &Law<f64>) -> TokenId {
    law.quantile(u * law.total(), &[])
}

/// Drafter-invariant noise (Daliri, Musco, Suresh, arXiv:2408.07978), keyed by (absolute position,
/// token): draft, target and later steps see the same noise, so a seeded text is a function of the
/// target's laws alone.
///
/// The token drawn is the arg min over x of -ln(u) / weight(x), u being the noise of x: an
/// exponential race, the same as the arg max of log p + Gumbel noise.
#[derive(Debug, Clone, Copy)]
pub struct Coupled<S = Key> {
    /// Whose noise.
    pub key: S,
}

/// Where the noise of [`Coupled`] comes from: a [`Key`], or in tests a grid.
pub trait Noise {
    /// Two words for each of the tokens 2 * `pair` and 2 * `pair` + 1 at `position`.
    fn block(&self, position: usize, pair: u32) -> [u32; 4];
}

impl Noise for Key {
    #[inline]
    fn block(&self, position: usize, pair: u32) -> [u32; 4] {
        philox(Coupled { key: *self }.counter(position, pair), self.words())
    }
}

impl Coupled {
    /// The counter of the two tokens 2 * `pair` and 2 * `pair` + 1.
    #[inline]
    pub fn counter(&self, position: usize, pair: u32) -> Counter {
        [COUPLED << 24 | pair, position as u32, (position as u64 >> 32) as u32, self.key.sample]
    }
}

impl<S: Noise> Coupled<S> {
    /// The noise of (position, token), in (0, 1).
    pub fn uniform(&self, position: usize, token: TokenId) -> f64 {
        self.pair(position, token / 2)[(token % 2) as usize]
    }

    /// The winner of the race at `position` for the weights of `law`.
    pub fn race(&self, position: usize, law: &Law<f64>) -> TokenId {
        let winner = self.ranking(position, law, &[], 1).pop();
        winner.expect("a law has a possible token")
    }

    /// The first `count` to finish that race, in order, `taken` ones left out: `count` draws without
    /// replacement (Gumbel top-k: Kool, van Hoof, Welling, arXiv:1903.06059).
    pub fn ranking(
        &self,
        position: usize,
        law: &Law<f64>,
        taken: &[TokenId],
        count: usize,
    ) -> Vec<TokenId> {
        if count == 0 {
            return Vec::new();
        }
        let mut finish = Finish { best: Vec::with_capacity(count + 1), count };
        if let Some(weights) = law.dense_weights() {
            self.run_dense(position, weights, taken, &mut finish);
        } else {
            let mut block = (u32::MAX, [0.0; 2]);
            for (token, &weight) in law.iter() {
                if block.0 != token / 2 {
                    block = (token / 2, self.pair(position, token / 2));
                }
                if weight > 0.0 && !taken.contains(&token) {
                    finish.arrive(token, block.1[(token % 2) as usize], weight);
                }
            }
        }
        finish.best.into_iter().map(|(_, token)| token).collect()
    }

    /// All tokens of a dense law: [`PAIRS`] blocks of noise at a time, of which the upper words
    /// alone are compared; hardly any token is then worth its logarithm.
    fn run_dense(&self, position: usize, weights: &[f64], taken: &[TokenId], finish: &mut Finish) {
        for (chunk, weights) in weights.chunks(2 * PAIRS).enumerate() {
            let first = (chunk * PAIRS) as u32;
            let mut noise = [[0; 4]; PAIRS];
            for (i, words) in noise.iter_mut().enumerate() {
                *words = self.key.block(position, first + i as u32);
            }
            // 1 - u is at least this many times 2^-32, whatever the lower word is.
            let distance = |i: usize| f64::from(!noise[i / 2][2 * (i % 2) + 1]);
            let limit = finish.limit() * 4_294_967_296.0;
            let near = |i: usize, weight: f64| distance(i) <= limit * weight;
            if !weights.iter().enumerate().fold(false, |any, (i, &w)| any | near(i, w)) {
                continue;
            }
            for (i, &weight) in weights.iter().enumerate() {
                let token = 2 * first + i as TokenId;
                let [low, high] = [0, 1].map(|word| noise[i / 2][2 * (i % 2) + word]);
                if weight > 0.0 && near(i, weight) && !taken.contains(&token) {
                    finish.arrive(token, uniform(low, high), weight);
                }
            }
        }
    }

    fn pair(&self, position: usize, pair: u32) -> [f64; 2] {
        let [a, b, c, d] = self.key.block(position, pair);
        [uniform(a, b), uniform(c, d)]
    }
}

/// Blocks of noise made at a time.
const PAIRS: usize = 8;

/// The first `count` of a race so far, in order.
struct Finish {
    best: Vec<(f64, TokenId)>,
    count: usize,
}

impl Finish {
    /// Nobody with (1 - u) / weight above this comes in among the first: -ln u >= 1 - u. The slack
    /// keeps the rounding of the test from dropping one, so the result is that of the race run in
    /// full.
    fn limit(&self) -> f64 {
        let last =
            if self.best.len() < self.count { f64::INFINITY } else { self.best[self.count - 1].0 };
        last * (1.0 + 1e-15)
    }

    /// A token, ids ascending, with its noise and weight.
    fn arrive(&mut self, token: TokenId, u: f64, weight: f64) {
        if 1.0 - u > self.limit() * weight {
            return;
        }
        let score = exponential(u) / weight;
        // Behind its equals: they have lower ids.
        let place = self.best.partition_point(|&(other, _)| other <= score);
        self.best.insert(place, (score, token));
        self.best.truncate(self.count);
    }
}

/// -ln u, never below its bound 1 - u.
fn exponential(u: f64) -> f64 {
    (-math::ln(u)).max(1.0 - u)
}

impl<S: Noise> Draws<f64> for Coupled<S> {
    fn draw(&mut self, _draw: Draw, position: usize, law: &Law<f64>) -> TokenId {
        self.race(position, law)
    }

    fn draw_without(
        &mut self,
        _draw: Draw,
        position: usize,
        law: &Law<f64>,
        taken: &[TokenId],
        count: usize,
    ) -> Vec<TokenId> {
        self.ranking(position, law, taken, count)
    }
}
