//! Q4_K and Q5_K: super-blocks of 256 with a scale and an offset for every 32. Exact integers all
//! through a super-block, scales of runs included, and two scales in single precision behind it.
//!
//! The largest sum, 8 runs of 32 products of 31 * 127 times 63, is 64 million and fits. A product
//! with a run rarely needs more than 16 bits, since the largest of 256 activations is 127 and the
//! others are smaller: it is narrow. Then an instruction of two 16-bit products, the upper one of
//! which is nothing, multiplies it by its scale and adds it. That leaves registers for thirteen rows.

use super::panel::{Dot, ahead};
use super::unpack::{FiveBits, Nibbles, scales_and_offsets};
use crate::acts::Super;
use crate::format::{Q4K, Q5K};
use crate::layout::{q4_k, q5_k};
use crate::simd::{Operands, Simd};

/// The largest sum of |x| over a run whose product with weights up to `weight` has 16 bits.
pub(super) const fn most(weight: i32) -> i32 {
    i16::MAX as i32 / weight
}

/// A super-block as runs of 32 weights.
trait Runs {
    /// The largest weight.
    const LARGEST: i32;

    fn head(&self) -> &q4_k::Head;
    fn run(&self, j: usize) -> impl Operands<8>;
}

impl Runs for q4_k::Group {
    const LARGEST: i32 = 15;

    #[inline(always)]
    fn head(&self) -> &q4_k::Head {
        &self.head
    }

    #[inline(always)]
    fn run(&self, j: usize) -> impl Operands<8> {
        ahead(&self.codes[j]);
        Nibbles(&self.codes[j])
    }
}

impl Runs for q5_k::Group {
    const LARGEST: i32 = 31;

    #[inline(always)]
    fn head(&self) -> &q4_k::Head {
        &self.head
    }

    #[inline(always)]
    fn run(&self, j: usize) -> impl Operands<8> {
        let sub = &self.subs[j];
        ahead(sub);
        FiveBits { low: &sub.low, high: &sub.high }
    }
}

impl Dot for Q4K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q4_k::Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        dot::<S, _, R, 8>(s, g, x, acc);
    }
}

impl Dot for Q5K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &q5_k::Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        dot::<S, _, R, 4>(s, g, x, acc);
    }
}

#[inline(always)]
fn dot<S: Simd, G: Runs, const R: usize, const CHAIN: usize>(
    s: S,
    g: &G,
    x: &[&Super; R],
    acc: &mut [S::F; R],
) {
    let head = Head::new(s, g.head());
    let mut sum = [s.splat_i32(0); R];
    if x.iter().all(|x| x.most32 <= const { most(G::LARGEST) }) {
        for (j, &scale) in head.scales.iter().enumerate() {
            let dots = products::<S, G, R, CHAIN>(s, g, x, j);
            for r in 0..R {
                sum[r] = s.dot_pairs(sum[r], dots[r], scale);
            }
        }
    } else {
        for (j, &scale) in head.scales.iter().enumerate() {
            let dots = products::<S, G, R, CHAIN>(s, g, x, j);
            for r in 0..R {
                sum[r] = s.add_i32(sum[r], s.mul_i32(dots[r], scale));
            }
        }
    }
    head.finish(s, &sum, x, acc);
}

/// The products with run j.
#[inline(always)]
fn products<S: Simd, G: Runs, const R: usize, const CHAIN: usize>(
    s: S,
    g: &G,
    x: &[&Super; R],
    j: usize,
) -> [S::I; R] {
    let mut dots = [s.splat_i32(0); R];
    s.dots::<8, CHAIN, R>(&mut dots, g.run(j), &x.map(|x| &x.words[j]));
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
