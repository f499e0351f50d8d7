//! Tokens and logits above a threshold: few of many, so whole vectors are passed over at once.

use crate::level::Kernel;
use crate::simd::{LANES, Simd};

/// Appends the ids of logits >= `threshold`, ascending.
pub(super) struct AtLeast<'a> {
    pub(super) row: &'a [f32],
    pub(super) threshold: f32,
    pub(super) out: &'a mut Vec<u32>,
}

impl Kernel for AtLeast<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let threshold = s.splat(self.threshold);
        let (vectors, tail) = self.row.as_chunks::<LANES>();
        for (i, vector) in vectors.iter().enumerate() {
            let mut mask = s.ge_mask(s.load(vector), threshold);
            while mask != 0 {
                self.out.push((i * LANES) as u32 + mask.trailing_zeros());
                mask &= mask - 1;
            }
        }
        for (i, &x) in tail.iter().enumerate() {
            if x >= self.threshold {
                self.out.push((vectors.len() * LANES + i) as u32);
            }
        }
    }
}

/// The k-th largest logit, counted with repetition.
pub(super) struct KthLargest<'a> {
    pub(super) row: &'a [f32],
    pub(super) k: usize,
    /// Scratch.
    pub(super) candidates: &'a mut Vec<f32>,
}

impl Kernel for KthLargest<'_> {
    type Output = f32;

    /// The k largest so far, and as many new ones again before they are cut back to k; what is not
    /// above the k-th of them is passed over.
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        let best = self.candidates;
        best.clear();
        let mut floor = f32::NEG_INFINITY;
        let (vectors, tail) = self.row.as_chunks::<LANES>();
        for vector in vectors {
            // Equals of the floor change nothing, but -inf may be needed to make up the number.
            let mut mask = s.ge_mask(s.load(vector), s.splat(floor));
            while mask != 0 {
                let x = vector[mask.trailing_zeros() as usize];
                mask &= mask - 1;
                if x > floor || best.len() < self.k {
                    push(best, x, self.k, &mut floor);
                }
            }
        }
        for &x in tail {
            if x > floor || best.len() < self.k {
                push(best, x, self.k, &mut floor);
            }
        }
        least(best, self.k)
    }
}

fn push(best: &mut Vec<f32>, x: f32, k: usize, floor: &mut f32) {
    best.push(x);
    if best.len() == 2 * k {
        *floor = least(best, k);
    }
}

/// Keeps the k largest values and returns the least of them.
fn least(values: &mut Vec<f32>, k: usize) -> f32 {
    let (_, &mut kth, _) = values.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    values.truncate(k);
    kth
}
