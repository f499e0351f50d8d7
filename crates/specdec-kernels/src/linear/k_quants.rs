//! K-quants: super-blocks of 256 with a scale for every 16 or 32. Exact integer dot products of
//! the runs, one fused multiply-add each, and the scale of x once a super-block.

use super::panel::{Dot, ahead};
use super::unpack::{nibbles, scales_and_offsets, six_bits};
use crate::acts::{Acts, Super};
use crate::format::{Q4K, Q6K};
use crate::layout::{q4_k, q6_k};
use crate::simd::Simd;

impl Dot for Q4K {
    type X = Super;

    #[inline(always)]
    fn activations(acts: &Acts, row: usize) -> &[Super] {
        acts.supers(row)
    }

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q4_k::Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        ahead::<R, _>(&g.d);
        ahead::<R, _>(&g.high);
        ahead::<R, _>(&g.low);
        let (scales, offsets) = scales_and_offsets(s, g);
        let d = s.load_f16(&g.d);
        let mut sum = constants(s, g, &offsets, x);
        for j in 0..8 {
            ahead::<R, _>(&g.codes[j]);
            let w = nibbles(s, &g.codes[j]);
            let pair = s.load_u8_pairs(&scales[j / 2]);
            let scale =
                if j % 2 == 0 { s.and_i32(pair, s.splat_i32(0xffff)) } else { s.shr_i32(pair, 16) };
            let scale = s.mul(d, s.to_f32(scale));
            for r in 0..R {
                let dot = s.dot::<8, 8>(s.splat_i32(0), &w, &x[r].words[j]);
                sum[r] = s.fma(s.to_f32(dot), scale, sum[r]);
            }
        }
        for r in 0..R {
            acc[r] = s.fma(sum[r], s.splat(x[r].scale), acc[r]);
        }
    }
}

/// -m * the sum over the runs of offset * sum of x: the constants of a super-block, one integer
/// dot product (63 * 4,064 * 8 fits easily).
#[inline(always)]
fn constants<S: Simd, const R: usize>(
    s: S,
    g: &q4_k::Group,
    offsets: &[[u8; 32]; 4],
    x: &[&Super; R],
) -> [S::F; R] {
    let mut sums = [s.splat_i32(0); R];
    for (j, offsets) in offsets.iter().enumerate() {
        let offsets = s.load_u8_pairs(offsets);
        for r in 0..R {
            sums[r] = s.dot_pairs(sums[r], offsets, x[r].sums[j]);
        }
    }
    let m = s.sub(s.zero(), s.load_f16(&g.m));
    let mut out = [s.zero(); R];
    for r in 0..R {
        out[r] = s.mul(s.to_f32(sums[r]), m);
    }
    out
}

impl Dot for Q6K {
    type X = Super;

    #[inline(always)]
    fn activations(acts: &Acts, row: usize) -> &[Super] {
        acts.supers(row)
    }

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q6_k::Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        ahead::<R, _>(&g.d);
        ahead::<R, _>(&g.scales);
        let d = s.load_f16(&g.d);
        let mut sum = [s.zero(); R];
        for j in 0..16 {
            ahead::<R, _>(&g.subs[j]);
            let w = six_bits(s, &g.subs[j]);
            let scale = s.mul(d, s.to_f32(s.load_i8(&g.scales[j])));
            for r in 0..R {
                let words = &x[r].words.as_flattened().as_chunks::<4>().0[j];
                let dot = s.dot::<4, 2>(s.splat_i32(x[r].less32[j]), &w, words);
                sum[r] = s.fma(s.to_f32(dot), scale, sum[r]);
            }
        }
        for r in 0..R {
            acc[r] = s.fma(sum[r], s.splat(x[r].scale), acc[r]);
        }
    }
}
