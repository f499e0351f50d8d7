//! The reference: plain Rust, one lane after the other.

use half::f16;

use super::{LANES, Simd};

/// Token of the level that every machine has.
#[derive(Copy, Clone)]
pub(crate) struct Scalar;

type F = [f32; LANES];
type I = [i32; LANES];

#[inline(always)]
fn map<A: Copy, B>(a: [A; LANES], f: impl Fn(A) -> B) -> [B; LANES] {
    std::array::from_fn(|i| f(a[i]))
}

#[inline(always)]
fn zip<A: Copy, B: Copy, C>(a: [A; LANES], b: [B; LANES], f: impl Fn(A, B) -> C) -> [C; LANES] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

/// The fixed tree: lanes i and i + 8, then i and i + 4, i + 2, i + 1.
#[inline(always)]
fn tree<A: Copy>(mut a: [A; LANES], f: impl Fn(A, A) -> A) -> A {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            a[i] = f(a[i], a[i + width]);
        }
        width /= 2;
    }
    a[0]
}

/// What `cvtps2dq` does.
#[inline(always)]
fn round_to_i32(x: f32) -> i32 {
    let r = x.round_ties_even();
    if (-2_147_483_648.0..2_147_483_648.0).contains(&r) { r as i32 } else { i32::MIN }
}

/// Applies a 16-bit operation to both halves of every lane.
#[inline(always)]
fn map_halves(a: [u8; 64], f: impl Fn(u16) -> u16) -> [u8; 64] {
    let mut out = a;
    for pair in out.as_chunks_mut::<2>().0 {
        *pair = f(u16::from_le_bytes(*pair)).to_le_bytes();
    }
    out
}

/// acc + w * x over the four bytes of a lane; the bytes of w are read by `weight`.
#[inline(always)]
fn dot4(acc: &mut I, w: &[u8; 64], x: i32, weight: impl Fn(u8) -> i32) {
    let x = x.to_le_bytes().map(|b| i32::from(b as i8));
    for (lane, w) in acc.iter_mut().zip(w.as_chunks::<4>().0) {
        for (&w, x) in w.iter().zip(x) {
            *lane = lane.wrapping_add(weight(w) * x);
        }
    }
}

#[inline(always)]
fn dot_halves(a: i32, b: i32) -> i32 {
    let (low, high) = (i32::from(a as i16) * i32::from(b as i16), (a >> 16) * (b >> 16));
    low.wrapping_add(high)
}

#[rustfmt::skip] // one operation a line reads as the table it is
impl Simd for Scalar {
    type F = F;
    type I = I;
    type B = [u8; 64];
    type D = [f64; LANES];

    #[inline(always)] fn load(self, from: &F) -> F { *from }
    #[inline(always)] fn store(self, v: F, to: &mut F) { *to = v; }
    #[inline(always)] fn load_f16(self, from: &[u16; LANES]) -> F { map(*from, |h| f16::from_bits(h).to_f32()) }
    #[inline(always)] fn load_bf16(self, from: &[u16; LANES]) -> F { map(*from, |h| f32::from_bits(u32::from(h) << 16)) }
    #[inline(always)] fn store_f16(self, v: F, to: &mut [u16; LANES]) { *to = map(v, |x| f16::from_f32(x).to_bits()); }
    #[inline(always)] fn load_i8_pairs(self, from: &[[i8; 2]; LANES]) -> I { from.map(|[a, b]| i32::from(a) & 0xffff | i32::from(b) << 16) }
    #[inline(always)] fn store_i8(self, v: I, to: &mut [i8; LANES]) { *to = map(v, |x| x as i8); }
    #[inline(always)] fn load_bytes(self, from: &[u8; 64]) -> [u8; 64] { *from }

    #[inline(always)] fn splat(self, x: f32) -> F { [x; LANES] }
    #[inline(always)] fn add(self, a: F, b: F) -> F { zip(a, b, |a, b| a + b) }
    #[inline(always)] fn sub(self, a: F, b: F) -> F { zip(a, b, |a, b| a - b) }
    #[inline(always)] fn mul(self, a: F, b: F) -> F { zip(a, b, |a, b| a * b) }
    #[inline(always)] fn div(self, a: F, b: F) -> F { zip(a, b, |a, b| a / b) }
    #[inline(always)] fn fma(self, a: F, b: F, c: F) -> F { std::array::from_fn(|i| a[i].mul_add(b[i], c[i])) }
    #[inline(always)] fn max(self, a: F, b: F) -> F { zip(a, b, |a, b| if a > b { a } else { b }) }
    #[inline(always)] fn min(self, a: F, b: F) -> F { zip(a, b, |a, b| if a < b { a } else { b }) }
    #[inline(always)] fn round(self, a: F) -> F { map(a, f32::round_ties_even) }
    #[inline(always)] fn sum(self, a: F) -> f32 { tree(a, |a, b| a + b) }
    #[inline(always)] fn max_lane(self, a: F) -> f32 { tree(a, |a, b| if a > b { a } else { b }) }

    #[inline(always)] fn ge_mask(self, a: F, b: F) -> u16 { (0..LANES).fold(0, |mask, i| mask | u16::from(a[i] >= b[i]) << i) }
    #[inline(always)] fn where_ge(self, a: F, b: F, then: F) -> F { std::array::from_fn(|i| if a[i] >= b[i] { then[i] } else { 0.0 }) }

    #[inline(always)] fn zero_f64(self) -> [f64; LANES] { [0.0; LANES] }
    #[inline(always)] fn add_f64(self, acc: [f64; LANES], a: F) -> [f64; LANES] { zip(acc, map(a, f64::from), |x, y| x + y) }
    #[inline(always)] fn sum_f64(self, acc: [f64; LANES]) -> f64 { tree(acc, |a, b| a + b) }

    #[inline(always)] fn to_i32(self, a: F) -> I { map(a, round_to_i32) }
    #[inline(always)] fn to_f32(self, a: I) -> F { map(a, |x| x as f32) }
    #[inline(always)] fn as_bits(self, a: F) -> I { map(a, |x| x.to_bits() as i32) }
    #[inline(always)] fn as_float(self, a: I) -> F { map(a, |x| f32::from_bits(x as u32)) }

    #[inline(always)] fn splat_i32(self, x: i32) -> I { [x; LANES] }
    #[inline(always)] fn add_i32(self, a: I, b: I) -> I { zip(a, b, i32::wrapping_add) }
    #[inline(always)] fn sub_i32(self, a: I, b: I) -> I { zip(a, b, i32::wrapping_sub) }
    #[inline(always)] fn mul_i32(self, a: I, b: I) -> I { zip(a, b, i32::wrapping_mul) }
    #[inline(always)] fn max_i32(self, a: I, b: I) -> I { zip(a, b, i32::max) }
    #[inline(always)] fn and_i32(self, a: I, b: I) -> I { zip(a, b, |a, b| a & b) }
    #[inline(always)] fn xor_i32(self, a: I, b: I) -> I { zip(a, b, |a, b| a ^ b) }
    #[inline(always)] fn swap_halves(self, a: I) -> I { map(a, |x| x.rotate_left(16)) }
    #[inline(always)] fn shl_i32(self, a: I, n: u32) -> I { map(a, |x| x << n) }
    #[inline(always)] fn shr_i32(self, a: I, n: u32) -> I { map(a, |x| x >> n) }
    #[inline(always)] fn sum_i32(self, a: I) -> i32 { tree(a, i32::wrapping_add) }
    #[inline(always)] fn store_i32(self, v: I, to: &mut I) { *to = v; }
    #[inline(always)] fn dot_pairs(self, acc: I, a: I, b: I) -> I { zip(acc, zip(a, b, dot_halves), i32::wrapping_add) }
    #[inline(always)] fn max_lane_i32(self, a: I) -> i32 { tree(a, i32::max) }

    #[inline(always)] fn splat_byte(self, x: u8) -> [u8; 64] { [x; 64] }
    #[inline(always)] fn words(self, a: [u8; 64]) -> I { std::array::from_fn(|i| i32::from_le_bytes(a.as_chunks().0[i])) }
    #[inline(always)] fn and(self, a: [u8; 64], b: [u8; 64]) -> [u8; 64] { std::array::from_fn(|i| a[i] & b[i]) }
    #[inline(always)] fn or(self, a: [u8; 64], b: [u8; 64]) -> [u8; 64] { std::array::from_fn(|i| a[i] | b[i]) }
    #[inline(always)] fn shl_b16(self, a: [u8; 64], n: u32) -> [u8; 64] { map_halves(a, |x| x << n) }
    #[inline(always)] fn shr_b16(self, a: [u8; 64], n: u32) -> [u8; 64] { map_halves(a, |x| x >> n) }

    #[inline(always)]
    fn dot<const N: usize, const CHAIN: usize>(self, mut acc: I, w: &[[u8; 64]; N], x: &[i32; N]) -> I {
        for i in 0..N { dot4(&mut acc, &w[i], x[i], i32::from); }
        acc
    }
    #[inline(always)]
    fn dot_signed<const N: usize>(self, _: I, w: &[[u8; 64]; N], x: &[i32; N]) -> I {
        let mut acc = [0; LANES];
        for i in 0..N { dot4(&mut acc, &w[i], x[i], |w| i32::from(w) - 128); }
        acc
    }
}
