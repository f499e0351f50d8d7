//! The float code that ships, with every number u it could draw replaced by every point of a grid:
//! its exact law under a coarse generator.

use std::cmp::Ordering;

use specdec_core::chances::{Chances, Draw, Draws, Noise, accept, invert};
use specdec_core::{Law, Number, TokenId};

use crate::enumerate::Branches;
use crate::rational::Rational;

/// Draws u from `points`, all alike, and decides with the production code.
#[derive(Debug)]
pub struct Grid<'a> {
    points: &'a [f64],
    even: Vec<Rational>,
    branches: &'a mut Branches,
}

impl<'a> Grid<'a> {
    /// All outcomes of u in `points`.
    pub fn new(points: &'a [f64], branches: &'a mut Branches) -> Self {
        let even = vec![Rational::new(1, points.len() as u64); points.len()];
        Self { points, even, branches }
    }

    fn uniform(&mut self) -> f64 {
        self.points[self.branches.choose(&self.even)]
    }
}

impl Draws<f64> for Grid<'_> {
    fn draw(&mut self, _draw: Draw, _position: usize, law: &Law) -> TokenId {
        invert(self.uniform(), law)
    }
}

impl Chances<f64> for Grid<'_> {
    fn accept(&mut self, _draw: Draw, p: &f64, q: &f64) -> bool {
        accept(self.uniform(), *p, *q)
    }
}

/// Explores the true branches and notes whether every probability is a multiple of 1 / `points`:
/// only then can the law on a grid of so many points be the true one.
#[derive(Debug)]
pub struct Fit<'a> {
    points: u32,
    branches: &'a mut Branches,
    fits: &'a mut bool,
}

impl<'a> Fit<'a> {
    /// Clears `fits` at the first probability that is no such multiple.
    pub fn new(points: u32, branches: &'a mut Branches, fits: &'a mut bool) -> Self {
        Self { points, branches, fits }
    }

    fn note(&mut self, probability: &Rational) {
        *self.fits &= (probability.clone() * self.points.into()).is_integer();
    }
}

impl Draws<Rational> for Fit<'_> {
    fn draw(&mut self, draw: Draw, position: usize, law: &Law<Rational>) -> TokenId {
        law.iter().for_each(|(_, weight)| self.note(&(weight.clone() / law.total().clone())));
        self.branches.draw(draw, position, law)
    }
}

impl Chances<Rational> for Fit<'_> {
    fn accept(&mut self, draw: Draw, p: &Rational, q: &Rational) -> bool {
        if p < q {
            self.note(&(p.clone() / q.clone()));
        }
        self.branches.accept(draw, p, q)
    }
}

/// The midpoints (k + 1/2) * 2^-bits of (0, 1).
pub fn midpoints(bits: u32) -> Vec<f64> {
    let n = 1_u32 << bits;
    (0..n).map(|k| (f64::from(k) + 0.5) / f64::from(n)).collect()
}

/// The numbers (k + 1/2) * 2^-52 of a few k < 2^52, as the words that the generator would give.
#[derive(Debug)]
pub struct Few<'a> {
    /// What k can be.
    pub points: &'a [u64],
    /// Which of them the token `t` of position `p` has: `chosen[p * vocab + t]`, the first beyond.
    pub chosen: &'a [u32],
    /// Tokens.
    pub vocab: usize,
}

impl Few<'_> {
    fn point(&self, position: usize, token: usize) -> u64 {
        let place = Some(position * self.vocab + token).filter(|_| token < self.vocab);
        let chosen = place.and_then(|place| self.chosen.get(place));
        self.points[chosen.map_or(0, |&i| i as usize)]
    }

    /// The tokens of positive weight in the order in which they finish the race at `position`, by
    /// exact arithmetic: x before y iff u(x)^weight(y) > u(y)^weight(x), or iff x < y where these
    /// are equal.
    pub fn order(&self, position: usize, weights: &[u32]) -> Vec<TokenId> {
        let u = |token: TokenId| {
            Rational::new(2 * self.point(position, token as usize) as i64 + 1, 1 << 53)
        };
        let power = |token: TokenId, exponent: u32| {
            (0..exponent).fold(Rational::one(), |product, _| product * u(token))
        };
        let before = |&x: &TokenId, &y: &TokenId| {
            let (a, b) = (power(x, weights[y as usize]), power(y, weights[x as usize]));
            b.partial_cmp(&a).unwrap_or(Ordering::Equal).then(x.cmp(&y))
        };
        let tokens = 0..weights.len() as TokenId;
        let mut order: Vec<_> = tokens.filter(|&token| weights[token as usize] > 0).collect();
        order.sort_by(before);
        order
    }
}

impl Noise for Few<'_> {
    fn block(&self, position: usize, pair: u32) -> [u32; 4] {
        let words = |token: usize| {
            let number = self.point(position, token) << 12;
            [number as u32, (number >> 32) as u32]
        };
        let first = 2 * pair as usize;
        let ([a, b], [c, d]) = (words(first), words(first + 1));
        [a, b, c, d]
    }
}
