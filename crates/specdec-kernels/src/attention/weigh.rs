//! Values times weights, added key by key.

use super::merge::Vector;
use super::scores::ask;
use crate::kv::{Element, PAGE};
use crate::simd::{LANES, Simd};

/// sums[m] += the values times their weights: `values` lie one after the other, the first one's
/// weight is `weights[m][first]`. What is `ahead` will be read soon.
#[inline(always)]
pub(super) fn weigh<S: Simd, E: Element, const M: usize>(
    s: S,
    values: &[E],
    ahead: &[E],
    weights: &[[f32; PAGE]; M],
    first: usize,
    sums: &mut [&mut [Vector]; M],
) {
    let vectors = sums[0].len();
    let values = values.as_chunks::<LANES>().0;
    let mut at = 0;
    // As many running sums as the registers hold.
    if S::WIDE && M <= 3 {
        while at + 8 <= vectors {
            columns::<S, E, M, 8>(s, values, ahead, weights, first, sums, at);
            at += 8;
        }
    }
    if S::WIDE || M == 1 {
        while at + 4 <= vectors {
            columns::<S, E, M, 4>(s, values, ahead, weights, first, sums, at);
            at += 4;
        }
    }
    while at + 2 <= vectors {
        columns::<S, E, M, 2>(s, values, ahead, weights, first, sums, at);
        at += 2;
    }
    if at < vectors {
        columns::<S, E, M, 1>(s, values, ahead, weights, first, sums, at);
    }
}

/// The same for vectors `at..at + C` of each value.
#[inline(always)]
fn columns<S: Simd, E: Element, const M: usize, const C: usize>(
    s: S,
    values: &[[E; LANES]],
    ahead: &[E],
    weights: &[[f32; PAGE]; M],
    first: usize,
    sums: &mut [&mut [Vector]; M],
    at: usize,
) {
    let vectors = sums[0].len();
    let mut totals = [[s.zero(); C]; M];
    for m in 0..M {
        for c in 0..C {
            totals[m][c] = s.load(&sums[m][at + c]);
        }
    }
    let keys = (values.len() / vectors).min(PAGE - first);
    let ahead = &ahead[ahead.len() * at / vectors..ahead.len() * (at + C) / vectors];
    let step = ahead.len().checked_div(keys).unwrap_or_default();
    for key in 0..keys {
        ask(ahead, key, step);
        let value: &[[E; LANES]] = &values[key * vectors + at..][..C];
        for c in 0..C {
            let v = E::load(s, &value[c]);
            for m in 0..M {
                totals[m][c] = s.fma(s.splat(weights[m][first + key]), v, totals[m][c]);
            }
        }
    }
    for m in 0..M {
        for c in 0..C {
            s.store(totals[m][c], &mut sums[m][at + c]);
        }
    }
}
