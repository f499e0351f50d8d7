//! K-quants: super-blocks of 256 with a scale for every 16 or 32. Exact integers all through a
//! super-block, scales of runs included, and two scales in single precision behind it.
//!
//! The largest sums: 8 runs of 32 products of 31 * 127 times 63 in Q5_K, 16 runs of 16 of 32 * 127
//! times 128 in Q6_K, 134 million and fit.
//!
//! A run's product rarely needs more than 16 bits, since the largest of 256 activations is 127 and
//! the others are smaller. Then its product with a scale of 16 bits is added in one instruction of
//! two 16-bit products, the upper one of which is nothing. That leaves registers for thirteen rows.

use super::panel::{Dot, ahead};
use super::unpack::{FiveBits, Nibbles, SixBits, scales_and_offsets};
use crate::acts::Super;
use crate::format::{Q4K, Q5K, Q6K};
use crate::layout::{q4_k, q5_k, q6_k};
use crate::simd::{Operands, Simd};

/// The largest sum of |x| over a run whose product with weights up to `weight` has 16 bits.
const fn most(weight: i32) -> i32 {
    i16::MAX as i32 / weight
}

/// The sum over all runs of product times scale, for each of `R` rows. `narrow`: no product needs
/// more than 16 bits. The scale is then one of 16 bits with zeros above, else a number of 32 bits.
macro_rules! sum_of_runs {
    ($s:ident, $rows:ident, $narrow:expr, $run:ident in $runs:literal => $dots:expr, $low:expr, $wide:expr) => {{
        let mut sum = [$s.splat_i32(0); $rows];
        if $narrow {
            for $run in 0..$runs {
                let (dots, scale) = ($dots, $low);
                for r in 0..$rows {
                    sum[r] = $s.dot_pairs(sum[r], dots[r], scale);
                }
            }
        } else {
            for $run in 0..$runs {
                let (dots, scale) = ($dots, $wide);
                for r in 0..$rows {
                    sum[r] = $s.add_i32(sum[r], $s.mul_i32(dots[r], scale));
                }
            }
        }
        sum
    }};
}

impl Dot for Q4K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q4_k::Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        let head = Head::new(s, &g.head);
        let narrow = x.iter().all(|x| x.most32 <= const { most(15) });
        let sum = sum_of_runs!(s, R, narrow, j in 8 => {
            ahead(&g.codes[j]);
            run_of_32::<S, R, 8>(s, Nibbles(&g.codes[j]), x, j)
        }, head.scales[j], head.scales[j]);
        head.finish(s, &sum, x, acc);
    }
}

impl Dot for Q5K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q5_k::Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        let head = Head::new(s, &g.head);
        let narrow = x.iter().all(|x| x.most32 <= const { most(31) });
        let sum = sum_of_runs!(s, R, narrow, j in 8 => {
            let sub = &g.subs[j];
            ahead(sub);
            run_of_32::<S, R, 4>(s, FiveBits { low: &sub.low, high: &sub.high }, x, j)
        }, head.scales[j], head.scales[j]);
        head.finish(s, &sum, x, acc);
    }
}

impl Dot for Q6K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q6_k::Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        ahead(&g.d);
        ahead(&g.scales);
        let d = s.load_f16(&g.d);
        let narrow = x.iter().all(|x| x.most16 <= const { most(32) });
        let sum = sum_of_runs!(s, R, narrow, j in 16 => {
            ahead(&g.subs[j]);
            run_of_16::<S, R>(s, SixBits(&g.subs[j]), x, j)
        }, s.and_i32(s.load_i8(&g.scales[j]), s.splat_i32(0xffff)), s.load_i8(&g.scales[j]));
        for r in 0..R {
            let sum = s.mul(s.to_f32(sum[r]), d);
            acc[r] = s.fma(sum, s.splat(x[r].scale), acc[r]);
        }
    }
}

/// The products with run j of 32.
#[inline(always)]
fn run_of_32<S: Simd, const R: usize, const CHAIN: usize>(
    s: S,
    w: impl Operands<8>,
    x: &[&Super; R],
    j: usize,
) -> [S::I; R] {
    let mut dots = [s.splat_i32(0); R];
    s.dots::<8, CHAIN, R>(&mut dots, w, &x.map(|x| &x.words[j]));
    dots
}

/// The products with run j of 16 of codes that are stored plus 32.
#[inline(always)]
fn run_of_16<S: Simd, const R: usize>(
    s: S,
    w: impl Operands<4>,
    x: &[&Super; R],
    j: usize,
) -> [S::I; R] {
    let mut dots = [s.splat_i32(0); R];
    for (dot, x) in dots.iter_mut().zip(x) {
        *dot = s.splat_i32(x.less32[j]);
    }
    let words = x.map(|x| &x.words.as_flattened().as_chunks::<4>().0[j]);
    s.dots::<4, 2, R>(&mut dots, w, &words);
    dots
}

/// Scales of a super-block of Q4_K or Q5_K run by run, and offsets of two runs side by side.
struct Head<S: Simd> {
    d: S::F,
    m: S::F,
    scales: [S::I; 8],
    offsets: [S::I; 4],
}

impl<S: Simd> Head<S> {
    #[inline(always)]
    fn new(s: S, head: &q4_k::Head) -> Head<S> {
        ahead(head);
        let (scales, offsets) = scales_and_offsets(s, head);
        let (d, m) = (s.load_f16(&head.d), s.sub(s.zero(), s.load_f16(&head.m)));
        Head { d, m, scales: singles(s, scales), offsets: pairs(s, offsets) }
    }

    /// acc[r] += (d * sum[r] - m * the sum over the runs of offset * sum of x) * the scale of x[r].
    #[inline(always)]
    fn finish<const R: usize>(&self, s: S, sum: &[S::I; R], x: &[&Super; R], acc: &mut [S::F; R]) {
        let mut off = [s.splat_i32(0); R];
        for (i, &offsets) in self.offsets.iter().enumerate() {
            for r in 0..R {
                off[r] = s.dot_pairs(off[r], offsets, s.splat_i32(x[r].sums[i]));
            }
        }
        for r in 0..R {
            let off = s.mul(s.to_f32(off[r]), self.m);
            let sum = s.fma(s.to_f32(sum[r]), self.d, off);
            acc[r] = s.fma(sum, s.splat(x[r].scale), acc[r]);
        }
    }
}

/// Bytes 0, 2, 1 and 3 of every lane, the order of the runs, as numbers of 32 bits.
#[inline(always)]
fn singles<S: Simd>(s: S, bytes: [S::B; 2]) -> [S::I; 8] {
    let mut singles = [s.splat_i32(0xff); 8];
    for (run, single) in singles.iter_mut().enumerate() {
        let byte = [0, 2, 1, 3][run % 4];
        *single = s.and_i32(s.shr_i32(s.words(bytes[run / 4]), 8 * byte), *single);
    }
    singles
}

/// Bytes 0 and 2 of every lane, then 1 and 3, as numbers of 16 bits.
#[inline(always)]
fn pairs<S: Simd>(s: S, bytes: [S::B; 2]) -> [S::I; 4] {
    let mask = s.splat_i32(0x00ff_00ff);
    let [a, b] = bytes.map(|bytes| s.words(bytes));
    [a, s.shr_i32(a, 8), b, s.shr_i32(b, 8)].map(|pair| s.and_i32(pair, mask))
}
