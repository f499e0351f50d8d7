//! Dot products of queries with 16 keys at a time.

use crate::kv::Element;
use crate::simd::{LANES, Simd};

/// Queries q[m] times the 16 keys of a tile: one lane for each key.
///
/// `tile` holds number i of all keys in `tile[i]`, a query its numbers in runs of 16. The numbers
/// l, l + 16, ... of a product make a chain, which is lane l of the law; the 16 chains are added
/// by the fixed tree: l and l + 8, then 4, 2, 1 apart.
#[inline(always)]
pub(super) fn scores<S: Simd, E: Element, const M: usize>(
    s: S,
    q: &[&[[f32; LANES]]; M],
    tile: &[[E; LANES]],
) -> [S::F; M] {
    let mut quarters = [[s.zero(); M]; 4];
    for (l, quarter) in quarters.iter_mut().enumerate() {
        let [a, b, c, d] = if S::WIDE {
            chains(s, q, tile, [l, l + 8, l + 4, l + 12])
        } else {
            let [a, b] = chains(s, q, tile, [l, l + 8]);
            let [c, d] = chains(s, q, tile, [l + 4, l + 12]);
            [a, b, c, d]
        };
        for m in 0..M {
            quarter[m] = s.add(s.add(a[m], b[m]), s.add(c[m], d[m]));
        }
    }
    let mut sums = [s.zero(); M];
    for (m, sum) in sums.iter_mut().enumerate() {
        let [a, b, c, d] = [quarters[0][m], quarters[1][m], quarters[2][m], quarters[3][m]];
        *sum = s.add(s.add(a, c), s.add(b, d));
    }
    sums
}

/// Chains l of the products, for L values of l.
#[inline(always)]
fn chains<S: Simd, E: Element, const M: usize, const L: usize>(
    s: S,
    q: &[&[[f32; LANES]]; M],
    tile: &[[E; LANES]],
    lanes: [usize; L],
) -> [[S::F; M]; L] {
    let mut sums = [[s.zero(); M]; L];
    for (c, numbers) in tile.as_chunks::<LANES>().0.iter().enumerate() {
        for l in 0..L {
            let k = E::load(s, &numbers[lanes[l]]);
            for m in 0..M {
                sums[l][m] = s.fma(s.splat(q[m][c][lanes[l]]), k, sums[l][m]);
            }
        }
    }
    sums
}
