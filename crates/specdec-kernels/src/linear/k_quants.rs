//! K-quants: super-blocks of 256 with a scale for every 16 or 32. Exact integers all through a
//! super-block, scales of runs included, and two scales in single precision behind it.
//!
//! The largest sums: 8 runs of 32 products of 31 * 127 times 63 in Q5_K, 16 runs of 16 of 32 * 127
//! times 128 in Q6_K, 134 million and fit. Beside that integers are faster: `vpmulld` has a pipe of
//! its own on Zen 4, while a fused multiply-add waits for those of `vpdpbusd` (220 against 195
//! GMAC/s in cache).

use super::panel::{Dot, ahead};
use super::rows::each_product;
use super::unpack::{fifth_bits, nibbles, scales_and_offsets, six_bits};
use crate::acts::Super;
use crate::format::{Q4K, Q5K, Q6K};
use crate::layout::{q4_k, q5_k, q6_k};
use crate::simd::Simd;

impl Dot for Q4K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q4_k::Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        let head = Head::new::<R>(s, &g.head);
        let mut sum = [s.splat_i32(0); R];
        for j in 0..8 {
            ahead::<R, _>(&g.codes[j]);
            let w = nibbles(s, &g.codes[j]);
            add::<_, R, 8>(s, &w, head.scale(s, j), (x, j), &mut sum);
        }
        head.finish(s, &sum, x, acc);
    }
}

impl Dot for Q5K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q5_k::Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        let head = Head::new::<R>(s, &g.head);
        let mut sum = [s.splat_i32(0); R];
        for j in 0..8 {
            ahead::<R, _>(&g.subs[j]);
            let w = fifth_bits(s, nibbles(s, &g.subs[j].low), &g.subs[j].high);
            add::<_, R, 4>(s, &w, head.scale(s, j), (x, j), &mut sum);
        }
        head.finish(s, &sum, x, acc);
    }
}

/// sum[r] += scale * (w * run j of x[r]).
#[inline(always)]
fn add<S: Simd, const R: usize, const CHAIN: usize>(
    s: S,
    w: &[S::B; 8],
    scale: S::I,
    (x, j): (&[&Super; R], usize),
    sum: &mut [S::I; R],
) {
    let none = s.splat_i32(0);
    each_product!(r of R, dot = s.dots::<8, CHAIN>(none, w, &x[r].words[j]), {
        sum[r] = s.add_i32(sum[r], s.mul_i32(dot, scale));
    });
}

/// Scales of a super-block of Q4_K or Q5_K.
struct Head<S: Simd> {
    d: S::F,
    m: S::F,
    scales: [S::I; 2],
    offsets: [S::B; 2],
}

impl<S: Simd> Head<S> {
    #[inline(always)]
    fn new<const R: usize>(s: S, head: &q4_k::Head) -> Head<S> {
        ahead::<R, _>(head);
        let (scales, offsets) = scales_and_offsets(s, head);
        let (d, m) = (s.load_f16(&head.d), s.sub(s.zero(), s.load_f16(&head.m)));
        Head { d, m, scales: scales.map(|bytes| s.words(bytes)), offsets }
    }

    /// The scale of run j.
    #[inline(always)]
    fn scale(&self, s: S, j: usize) -> S::I {
        s.and_i32(s.shr_i32(self.scales[j / 4], 8 * (j as u32 % 4)), s.splat_i32(0xff))
    }

    /// acc[r] += (d * sum[r] - m * the sum over the runs of offset * sum of x) * the scale of x[r].
    #[inline(always)]
    fn finish<const R: usize>(&self, s: S, sum: &[S::I; R], x: &[&Super; R], acc: &mut [S::F; R]) {
        let none = s.splat_i32(0);
        each_product!(r of R, high = s.dots::<2, 2>(none, &self.offsets, &x[r].sums_high), {
            let off = s.dot::<2, 2>(s.shl_i32(high, 6), &self.offsets, &x[r].sums_low);
            let off = s.mul(s.to_f32(off), self.m);
            let sum = s.fma(s.to_f32(sum[r]), self.d, off);
            acc[r] = s.fma(sum, s.splat(x[r].scale), acc[r]);
        });
    }
}

impl Dot for Q6K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q6_k::Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        ahead::<R, _>(&g.d);
        ahead::<R, _>(&g.scales);
        let d = s.load_f16(&g.d);
        let mut sum = [s.splat_i32(0); R];
        for j in 0..16 {
            ahead::<R, _>(&g.subs[j]);
            let w = six_bits(s, &g.subs[j]);
            let scale = s.load_i8(&g.scales[j]);
            let less = x.map(|x| x.less32[j]);
            let words = x.map(|x| &x.words.as_flattened().as_chunks::<4>().0[j]);
            each_product!(r of R, dot = s.dots::<4, 2>(s.splat_i32(less[r]), &w, words[r]), {
                sum[r] = s.add_i32(sum[r], s.mul_i32(dot, scale));
            });
        }
        for r in 0..R {
            let sum = s.mul(s.to_f32(sum[r]), d);
            acc[r] = s.fma(sum, s.splat(x[r].scale), acc[r]);
        }
    }
}
