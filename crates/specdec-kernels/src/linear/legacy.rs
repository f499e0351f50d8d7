//! Formats with blocks of 32: an exact integer dot product, then
//! acc += (dot * scale of x) * scale of w, with one rounding each.

use super::panel::{Dot, ahead};
use super::rows::each_product;
use super::unpack::{doubled_nibbles, fifth_bits, nibbles};
use crate::acts::Pair;
use crate::format::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
use crate::layout::{q4_0, q4_1, q5_0, q5_1, q8_0};
use crate::simd::Simd;

/// acc + (dot * x) * w.
#[inline(always)]
fn scaled<S: Simd>(s: S, dot: S::I, x: f32, w: S::F, acc: S::F) -> S::F {
    s.fma(s.mul(s.to_f32(dot), s.splat(x)), w, acc)
}

impl Dot for Q4_0 {
    type X = Pair;

    /// d * (code - 8) = d / 2 * (2 * code - 16), where the 16 is what Q5_0 takes off as well.
    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q4_0::Group, x: &[&Pair; R], acc: &mut [S::F; R]) {
        ahead::<R, _>(&g.d);
        for b in 0..2 {
            let d = s.mul(s.load_f16(&g.d[b]), s.splat(0.5));
            ahead::<R, _>(&g.codes[b]);
            let w = doubled_nibbles(s, &g.codes[b]);
            each_product!(r of R, dot = s.dots::<8, 4>(s.splat_i32(x[r].less16[b]), &w, &x[r].words[b]), {
                acc[r] = scaled(s, dot, x[r].scale[b], d, acc[r]);
            });
        }
    }
}

impl Dot for Q4_1 {
    type X = Pair;

    /// The constant m of a block meets the sum of its x.
    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q4_1::Group, x: &[&Pair; R], acc: &mut [S::F; R]) {
        ahead::<R, _>(&g.d);
        ahead::<R, _>(&g.m);
        for b in 0..2 {
            let (d, m) = (s.load_f16(&g.d[b]), s.load_f16(&g.m[b]));
            ahead::<R, _>(&g.codes[b]);
            let w = nibbles(s, &g.codes[b]);
            each_product!(r of R, dot = s.dots::<8, 8>(s.splat_i32(0), &w, &x[r].words[b]), {
                acc[r] = scaled(s, dot, x[r].scale[b], d, acc[r]);
                acc[r] = s.fma(m, s.splat(x[r].sum[b]), acc[r]);
            });
        }
    }
}

impl Dot for Q5_0 {
    type X = Pair;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q5_0::Group, x: &[&Pair; R], acc: &mut [S::F; R]) {
        ahead::<R, _>(&g.d);
        ahead::<R, _>(&g.high);
        for b in 0..2 {
            let d = s.load_f16(&g.d[b]);
            ahead::<R, _>(&g.low[b]);
            let w = fifth_bits(s, nibbles(s, &g.low[b]), &g.high[b]);
            each_product!(r of R, dot = s.dots::<8, 4>(s.splat_i32(x[r].less16[b]), &w, &x[r].words[b]), {
                acc[r] = scaled(s, dot, x[r].scale[b], d, acc[r]);
            });
        }
    }
}

impl Dot for Q5_1 {
    type X = Pair;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q5_1::Group, x: &[&Pair; R], acc: &mut [S::F; R]) {
        ahead::<R, _>(&g.d);
        ahead::<R, _>(&g.m);
        ahead::<R, _>(&g.high);
        for b in 0..2 {
            let (d, m) = (s.load_f16(&g.d[b]), s.load_f16(&g.m[b]));
            ahead::<R, _>(&g.low[b]);
            let w = fifth_bits(s, nibbles(s, &g.low[b]), &g.high[b]);
            each_product!(r of R, dot = s.dots::<8, 4>(s.splat_i32(0), &w, &x[r].words[b]), {
                acc[r] = scaled(s, dot, x[r].scale[b], d, acc[r]);
                acc[r] = s.fma(m, s.splat(x[r].sum[b]), acc[r]);
            });
        }
    }
}

impl Dot for Q8_0 {
    type X = Pair;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q8_0::Group, x: &[&Pair; R], acc: &mut [S::F; R]) {
        ahead::<R, _>(&g.d);
        for b in 0..2 {
            let d = s.load_f16(&g.d[b]);
            ahead::<R, _>(&g.codes[b]);
            let mut w = [s.splat_byte(0); 8];
            for (w, codes) in w.iter_mut().zip(&g.codes[b]) {
                *w = s.load_bytes(codes);
            }
            each_product!(r of R, dot = s.dots_signed::<8>(s.splat_i32(x[r].less128[b]), &w, &x[r].words[b]), {
                acc[r] = scaled(s, dot, x[r].scale[b], d, acc[r]);
            });
        }
    }
}
