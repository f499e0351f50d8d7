//! Formats with blocks of 32: an exact integer dot product, then
//! acc += (dot * scale of x) * scale of w, with one rounding each.

use super::panel::{Dot, ahead};
use super::unpack::{Bytes, DoubledNibbles, FiveBits, Nibbles};
use crate::acts::Pair;
use crate::format::{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};
use crate::layout::{q4_0, q4_1, q5_0, q5_1, q8_0};
use crate::simd::Simd;

/// Multiplies weights with each of `R` rows and runs a body for each row and its product.
macro_rules! each_product {
    (
        $r:ident of $rows:ident,
        $dot:ident = $s:ident.$dots:ident::<$($arg:tt),*>($start:expr, $w:expr, $x:expr), $body:block
    ) => {{
        let mut dots = [$s.splat_i32(0); $rows];
        for $r in 0..$rows {
            dots[$r] = $start;
        }
        let x: [_; $rows] = std::array::from_fn(|$r| $x);
        $s.$dots::<$($arg,)* $rows>(&mut dots, $w, &x);
        for ($r, $dot) in dots.into_iter().enumerate() $body
    }};
}

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
        ahead(&g.d);
        for b in 0..2 {
            let d = s.mul(s.load_f16(&g.d[b]), s.splat(0.5));
            ahead(&g.codes[b]);
            let w = DoubledNibbles(&g.codes[b]);
            each_product!(r of R, dot = s.dots::<8, 4>(s.splat_i32(x[r].less16[b]), w, &x[r].words[b]), {
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
        ahead(&g.d);
        ahead(&g.m);
        for b in 0..2 {
            let (d, m) = (s.load_f16(&g.d[b]), s.load_f16(&g.m[b]));
            ahead(&g.codes[b]);
            let w = Nibbles(&g.codes[b]);
            each_product!(r of R, dot = s.dots::<8, 8>(s.splat_i32(0), w, &x[r].words[b]), {
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
        ahead(&g.d);
        ahead(&g.high);
        for b in 0..2 {
            let d = s.load_f16(&g.d[b]);
            ahead(&g.low[b]);
            let w = FiveBits { low: &g.low[b], high: &g.high[b] };
            each_product!(r of R, dot = s.dots::<8, 4>(s.splat_i32(x[r].less16[b]), w, &x[r].words[b]), {
                acc[r] = scaled(s, dot, x[r].scale[b], d, acc[r]);
            });
        }
    }
}

impl Dot for Q5_1 {
    type X = Pair;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q5_1::Group, x: &[&Pair; R], acc: &mut [S::F; R]) {
        ahead(&g.d);
        ahead(&g.m);
        ahead(&g.high);
        for b in 0..2 {
            let (d, m) = (s.load_f16(&g.d[b]), s.load_f16(&g.m[b]));
            ahead(&g.low[b]);
            let w = FiveBits { low: &g.low[b], high: &g.high[b] };
            each_product!(r of R, dot = s.dots::<8, 4>(s.splat_i32(0), w, &x[r].words[b]), {
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
        ahead(&g.d);
        for b in 0..2 {
            let d = s.load_f16(&g.d[b]);
            ahead(&g.codes[b]);
            each_product!(r of R, dot = s.dots_signed::<8>(s.splat_i32(x[r].less128[b]), Bytes(&g.codes[b]), &x[r].words[b]), {
                acc[r] = scaled(s, dot, x[r].scale[b], d, acc[r]);
            });
        }
    }
}
