//! Q6_K: super-blocks of 256 with a signed scale for every 16. Exact integers all through a
//! super-block: 16 runs of 16 products of 32 * 127 times 128 are 133 million at most and fit.
//!
//! A product with a run is narrow, 16 bits, as in the other K-quants. Two of them grow in one
//! word, whose halves change places in between, and one instruction multiplies both by their scales:
//! with a run this short, loading what a product begins with and scaling it would else be a fifth of
//! the work. A half holds 2^15 more than its product, so that, read without a sign, it never leaves
//! 16 bits: nothing is borrowed from the other half or carried into it. Its highest bit, turned
//! over, takes the 2^15 off again.

use super::k_quants::most;
use super::panel::{Dot, ahead};
use super::unpack::{Same, SixBits};
use crate::acts::Super;
use crate::format::Q6K;
use crate::layout::q6_k::Group;
use crate::simd::{Operands, Simd};

impl Dot for Q6K {
    type X = Super;

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, g: &Group, x: &[&Super; R], acc: &mut [S::F; R]) {
        ahead(&g.d);
        ahead(&g.scales);
        let d = s.load_f16(&g.d);
        let sum = if x.iter().all(|x| x.most16 <= const { most(32) }) {
            narrow(s, g, x)
        } else {
            wide(s, g, x)
        };
        for r in 0..R {
            let sum = s.mul(s.to_f32(sum[r]), d);
            acc[r] = s.fma(sum, s.splat(x[r].scale), acc[r]);
        }
    }
}

/// The sum over the runs of product times scale.
#[inline(always)]
fn narrow<S: Simd, const R: usize>(s: S, g: &Group, x: &[&Super; R]) -> [S::I; R] {
    let highest = s.splat_i32(0x8000_8000_u32 as i32);
    let mut sum = [s.splat_i32(0); R];
    for (i, scales) in g.scales.iter().enumerate() {
        let mut dots = [s.splat_i32(0); R];
        for r in 0..R {
            dots[r] = s.splat_i32(x[r].starts[i]);
        }
        add(s, run(g, 2 * i + 1), x, 2 * i + 1, &mut dots);
        for dot in &mut dots {
            *dot = s.swap_halves(*dot);
        }
        add(s, run(g, 2 * i), x, 2 * i, &mut dots);
        let scales = s.load_i8_pairs(scales);
        for r in 0..R {
            sum[r] = s.dot_pairs(sum[r], s.xor_i32(dots[r], highest), scales);
        }
    }
    sum
}

/// The same for products of more than 16 bits.
#[inline(always)]
fn wide<S: Simd, const R: usize>(s: S, g: &Group, x: &[&Super; R]) -> [S::I; R] {
    let mut sum = [s.splat_i32(0); R];
    for j in 0..16 {
        let (mut dots, mut less) = ([s.splat_i32(0); R], [s.splat_i32(0); R]);
        add(s, run(g, j), x, j, &mut dots);
        add(s, Same(32), x, j, &mut less);
        let to_high = 16 * (1 - j as u32 % 2);
        let scale = s.shr_i32(s.shl_i32(s.load_i8_pairs(&g.scales[j / 2]), to_high), 16);
        for r in 0..R {
            let dot = s.sub_i32(dots[r], less[r]);
            sum[r] = s.add_i32(sum[r], s.mul_i32(dot, scale));
        }
    }
    sum
}

/// The weights of run j.
#[inline(always)]
fn run(g: &Group, j: usize) -> SixBits<'_> {
    ahead(&g.subs[j]);
    SixBits(&g.subs[j])
}

/// Adds products with the activations of run j.
#[inline(always)]
fn add<S: Simd, const R: usize>(
    s: S,
    weights: impl Operands<4>,
    x: &[&Super; R],
    j: usize,
    dots: &mut [S::I; R],
) {
    let words = x.map(|x| &x.words.as_flattened().as_chunks::<4>().0[j]);
    s.dots::<4, 2, R>(dots, weights, &words);
}
