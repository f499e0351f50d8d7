//! K-quants: super-blocks of 256 with a scale for every 16 or 32. Exact integer dot products of
//! the runs, one fused multiply-add each, and the scale of x once a super-block.

use super::panel::{Dot, ahead, each_row};
use super::unpack::{fifth_bits, nibbles, scales_and_offsets, six_bits};
use crate::acts::Super;
use crate::format::{Q4K, Q5K, Q6K};
use crate::layout::{q4_k, q5_k, q6_k};
use crate::simd::Simd;

impl Dot for Q4K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(
        s: S,
        g: &q4_k::Group,
        n: usize,
        x: &[&Super; R],
        acc: &mut [S::F; R],
    ) {
        let head = Head::new::<R>(s, &g.head);
        let mut sum = head.constants(s, n, x);
        for j in 0..8 {
            ahead::<R, _>(&g.codes[j]);
            let w = nibbles(s, &g.codes[j]);
            add::<_, R, 8>(s, &w, head.scale(s, j), n, (x, j), &mut sum);
        }
        finish(s, n, &sum, x, acc);
    }
}

impl Dot for Q5K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(
        s: S,
        g: &q5_k::Group,
        n: usize,
        x: &[&Super; R],
        acc: &mut [S::F; R],
    ) {
        let head = Head::new::<R>(s, &g.head);
        let mut sum = head.constants(s, n, x);
        for j in 0..8 {
            ahead::<R, _>(&g.subs[j]);
            let w = fifth_bits(s, nibbles(s, &g.subs[j].low), &g.subs[j].high);
            add::<_, R, 4>(s, &w, head.scale(s, j), n, (x, j), &mut sum);
        }
        finish(s, n, &sum, x, acc);
    }
}

/// sum[r] += scale * (w * run j of x[r]).
#[inline(always)]
fn add<S: Simd, const R: usize, const CHAIN: usize>(
    s: S,
    w: &[S::B; 8],
    scale: S::F,
    n: usize,
    (x, j): (&[&Super; R], usize),
    sum: &mut [S::F; R],
) {
    each_row!(r of n, R, {
        let dot = s.dot::<8, CHAIN>(s.splat_i32(0), w, &x[r].words[j]);
        sum[r] = s.fma(s.to_f32(dot), scale, sum[r]);
    });
}

/// acc[r] += sum[r] * the scale of x[r].
#[inline(always)]
fn finish<S: Simd, const R: usize>(
    s: S,
    n: usize,
    sum: &[S::F; R],
    x: &[&Super; R],
    acc: &mut [S::F; R],
) {
    each_row!(r of n, R, {
        acc[r] = s.fma(sum[r], s.splat(x[r].scale), acc[r]);
    });
}

/// Scales of a super-block of Q4_K or Q5_K.
struct Head<S: Simd> {
    d: S::F,
    m: S::F,
    scales: [[u8; 32]; 4],
    offsets: [[u8; 32]; 4],
}

impl<S: Simd> Head<S> {
    #[inline(always)]
    fn new<const R: usize>(s: S, head: &q4_k::Head) -> Head<S> {
        ahead::<R, _>(head);
        let (scales, offsets) = scales_and_offsets(s, head);
        let (d, m) = (s.load_f16(&head.d), s.sub(s.zero(), s.load_f16(&head.m)));
        Head { d, m, scales, offsets }
    }

    /// -m * the sum over the runs of offset * sum of x: the constants of a super-block, one integer
    /// dot product (63 * 4,064 * 8 fits easily).
    #[inline(always)]
    fn constants<const R: usize>(&self, s: S, n: usize, x: &[&Super; R]) -> [S::F; R] {
        let mut offsets = [s.splat_i32(0); 4];
        for (offsets, bytes) in offsets.iter_mut().zip(&self.offsets) {
            *offsets = s.load_u8_pairs(bytes);
        }
        let mut out = [s.zero(); R];
        each_row!(r of n, R, {
            let mut sum = s.splat_i32(0);
            for (offsets, sums) in offsets.into_iter().zip(x[r].sums) {
                sum = s.dot_pairs(sum, offsets, sums);
            }
            out[r] = s.mul(s.to_f32(sum), self.m);
        });
        out
    }

    /// d * the scale of run j.
    #[inline(always)]
    fn scale(&self, s: S, j: usize) -> S::F {
        let pair = s.load_u8_pairs(&self.scales[j / 2]);
        let scale = if j.is_multiple_of(2) {
            s.and_i32(pair, s.splat_i32(0xffff))
        } else {
            s.shr_i32(pair, 16)
        };
        s.mul(self.d, s.to_f32(scale))
    }
}

impl Dot for Q6K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(
        s: S,
        g: &q6_k::Group,
        n: usize,
        x: &[&Super; R],
        acc: &mut [S::F; R],
    ) {
        ahead::<R, _>(&g.d);
        ahead::<R, _>(&g.scales);
        let d = s.load_f16(&g.d);
        let mut sum = [s.zero(); R];
        for j in 0..16 {
            ahead::<R, _>(&g.subs[j]);
            let w = six_bits(s, &g.subs[j]);
            let scale = s.mul(d, s.to_f32(s.load_i8(&g.scales[j])));
            each_row!(r of n, R, {
                let words = &x[r].words.as_flattened().as_chunks::<4>().0[j];
                let dot = s.dot::<4, 2>(s.splat_i32(x[r].less32[j]), &w, words);
                sum[r] = s.fma(s.to_f32(dot), scale, sum[r]);
            });
        }
        finish(s, n, &sum, x, acc);
    }
}
