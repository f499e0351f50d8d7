//! What a query has of a block, and how blocks become a row.
//!
//! A share is vectors of 16: the largest score (in all lanes), the sum of the weights
//! e^(score - largest) in 16 lanes by position mod 16, and the values times their weights. Shares
//! are merged in order of position, each wholly computed before; so it does not matter who computed
//! it, and when.

use std::ops::{Deref, DerefMut};

use crate::kv::PAGE;
use crate::math::exp;
use crate::simd::{LANES, Simd};

/// On a line of its own, so that no access takes two and no two threads write to one.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Vector([f32; LANES]);

impl Vector {
    pub(super) const ZERO: Self = Self([0.0; LANES]);
}

impl Deref for Vector {
    type Target = [f32; LANES];

    #[inline(always)]
    fn deref(&self) -> &[f32; LANES] {
        &self.0
    }
}

impl DerefMut for Vector {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32; LANES] {
        &mut self.0
    }
}

/// Vectors of a share before its sums of values.
pub(super) const HEADER: usize = 2;

/// Turns the scores of a block, -infinity where there is none, into weights, and starts a share.
#[inline(always)]
pub(super) fn softmax<S: Simd>(s: S, scores: &mut [f32; PAGE], share: &mut [Vector]) {
    let [a, b, c, d] = scores.as_chunks_mut::<LANES>().0 else { return };
    let largest = s.max(s.max(s.load(a), s.load(b)), s.max(s.load(c), s.load(d)));
    let largest = s.splat(s.max_lane(largest));
    let mut total = s.zero();
    for lanes in [a, b, c, d] {
        let weight = exp(s, s.sub(s.load(lanes), largest));
        s.store(weight, lanes);
        total = s.add(total, weight);
    }
    s.store(largest, &mut share[0]);
    s.store(total, &mut share[1]);
    for sum in &mut share[HEADER..] {
        s.store(s.zero(), sum);
    }
}

/// Takes the shares of the next block into those of up to 16 queries.
#[inline(always)]
pub(super) fn merge<S: Simd>(s: S, into: &mut [&mut [Vector]], next: &[&[Vector]]) {
    let (mut old, mut new) = ([0.0; LANES], [0.0; LANES]);
    for (q, (into, next)) in into.iter().zip(next).enumerate() {
        (old[q], new[q]) = (into[0][0], next[0][0]);
    }
    // One of the two factors is 1.
    let below = s.sub(s.load(&old), s.load(&new));
    let below = s.min(below, s.sub(s.zero(), below));
    let mut factor = [0.0; LANES];
    s.store(exp(s, below), &mut factor);
    for (q, (into, next)) in into.iter_mut().zip(next).enumerate() {
        let grows = new[q] > old[q];
        let (keep, take) = if grows { (factor[q], 1.0) } else { (1.0, factor[q]) };
        let (keep, take) = (s.splat(keep), s.splat(take));
        if grows {
            into[0] = next[0];
        }
        for (into, next) in into[1..].iter_mut().zip(&next[1..]) {
            s.store(s.fma(s.load(next), take, s.mul(s.load(into), keep)), into);
        }
    }
}

/// The values of a share divided by the sum of its weights.
#[inline(always)]
pub(super) fn finish<S: Simd>(s: S, share: &[Vector], out: &mut [[f32; LANES]]) {
    let sum = s.splat(s.sum(s.load(&share[1])));
    for (out, total) in out.iter_mut().zip(&share[HEADER..]) {
        s.store(s.div(s.load(total), sum), out);
    }
}
