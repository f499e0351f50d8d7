//! Dot products of queries with the keys of a block, 16 keys in a vector.

use std::ops::Range;

use crate::kv::{Element, PAGE, TILE};
use crate::simd::{LANES, Simd, prefetch_bytes};

/// scale * q[m] * key for the keys of some tiles: one lane for each key, one chain over the numbers
/// of the head. Lanes of other tiles may be written too.
///
/// A tile holds number i of its 16 keys as vector i; a query its numbers in runs of 16. What is
/// `ahead` will be read soon.
#[inline(always)]
pub(super) fn scores<S: Simd, E: Element, const M: usize>(
    s: S,
    q: &[&[[f32; LANES]]; M],
    keys: &[&[E]; PAGE / TILE],
    tiles: Range<usize>,
    ahead: [&[E]; 2],
    scale: f32,
    out: &mut [[f32; PAGE]; M],
) {
    if tiles.len() <= 2 {
        chains::<S, E, M, 2>(s, q, keys, tiles.start.min(2), ahead, scale, out);
    } else if S::WIDE {
        chains::<S, E, M, 4>(s, q, keys, 0, ahead, scale, out);
    } else {
        chains::<S, E, M, 2>(s, q, keys, 0, ahead, scale, out);
        chains::<S, E, M, 2>(s, q, keys, 2, [&[], &[]], scale, out);
    }
}

/// Asks for part i of some numbers, of `step` each.
#[inline(always)]
pub(super) fn ask<E>(ahead: &[E], i: usize, step: usize) {
    prefetch_bytes(ahead.as_ptr().wrapping_add(i * step).cast(), step * size_of::<E>());
}

/// The same for the tiles `first..first + T`, so that many chains are on their way at a time.
#[inline(always)]
fn chains<S: Simd, E: Element, const M: usize, const T: usize>(
    s: S,
    q: &[&[[f32; LANES]]; M],
    keys: &[&[E]; PAGE / TILE],
    first: usize,
    ahead: [&[E]; 2],
    scale: f32,
    out: &mut [[f32; PAGE]; M],
) {
    let chunks = q[0].len();
    let mut tiles = [&[][..]; T];
    for (t, tile) in tiles.iter_mut().enumerate() {
        *tile = &keys[first + t].as_chunks::<LANES>().0.as_chunks::<LANES>().0[..chunks];
    }
    let mut sums = [[s.zero(); M]; T];
    let numbers = chunks * LANES;
    let steps = [ahead[0].len() / numbers, ahead[1].len() / numbers];
    for c in 0..chunks {
        for i in 0..LANES {
            for (ahead, step) in ahead.iter().zip(steps) {
                ask(ahead, c * LANES + i, step);
            }
            for t in 0..T {
                let k = E::load(s, &tiles[t][c][i]);
                for m in 0..M {
                    sums[t][m] = s.fma(s.splat(q[m][c][i]), k, sums[t][m]);
                }
            }
        }
    }
    for (t, sums) in sums.iter().enumerate() {
        for (sum, out) in sums.iter().zip(out.iter_mut()) {
            let to = &mut out.as_chunks_mut::<LANES>().0[first + t];
            s.store(s.mul(*sum, s.splat(scale)), to);
        }
    }
}
