//! Values times weights, added key by key.

use super::block::Block;
use crate::kv::{Element, PAGE};
use crate::simd::{LANES, Simd};

/// Weights of a block for M queries, and what their sums so far are multiplied by.
pub(super) struct Weights<const M: usize> {
    pub(super) of: [[f32; PAGE]; M],
    pub(super) rescale: [f32; M],
}

/// sums[m] = sums[m] * rescale[m] + the values of the block times their weights. `sums` are the M
/// heads one after the other, in vectors.
#[inline(always)]
pub(super) fn weigh<S: Simd, E: Element, const M: usize>(
    s: S,
    block: &Block<'_, E>,
    weights: &Weights<M>,
    sums: &mut [[f32; LANES]],
) {
    let vectors = sums.len() / M;
    let mut at = 0;
    // As many running sums as the registers hold.
    if S::WIDE {
        while at + 4 <= vectors {
            columns::<S, E, M, 4>(s, block, weights, sums, at);
            at += 4;
        }
    }
    while at + 2 <= vectors {
        columns::<S, E, M, 2>(s, block, weights, sums, at);
        at += 2;
    }
    if at < vectors {
        columns::<S, E, M, 1>(s, block, weights, sums, at);
    }
}

/// The same for vectors `at..at + C` of each head.
#[inline(always)]
fn columns<S: Simd, E: Element, const M: usize, const C: usize>(
    s: S,
    block: &Block<'_, E>,
    weights: &Weights<M>,
    sums: &mut [[f32; LANES]],
    at: usize,
) {
    let vectors = sums.len() / M;
    let mut totals = [[s.zero(); C]; M];
    for (m, totals) in totals.iter_mut().enumerate() {
        let rescale = s.splat(weights.rescale[m]);
        for (c, total) in totals.iter_mut().enumerate() {
            *total = s.mul(s.load(&sums[m * vectors + at + c]), rescale);
        }
    }
    let mut offset = block.seen.start;
    for run in block.values {
        for value in run.as_chunks::<LANES>().0.chunks_exact(vectors) {
            let Some(value) = value[at..].first_chunk::<C>() else { return };
            let mut v = [s.zero(); C];
            for c in 0..C {
                v[c] = E::load(s, &value[c]);
            }
            for (totals, weights) in totals.iter_mut().zip(&weights.of) {
                let weight = s.splat(weights[offset % PAGE]);
                for c in 0..C {
                    totals[c] = s.fma(weight, v[c], totals[c]);
                }
            }
            offset += 1;
        }
    }
    for (m, totals) in totals.iter().enumerate() {
        for (c, total) in totals.iter().enumerate() {
            s.store(*total, &mut sums[m * vectors + at + c]);
        }
    }
}
