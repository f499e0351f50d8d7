//! Codes from memory to operands: unsigned bytes, four columns of sixteen rows each.

use crate::layout::{q4_k::Head, q6_k::Sub};
use crate::simd::Simd;

/// Half bytes of 32 columns.
#[inline(always)]
pub(super) fn nibbles<S: Simd>(s: S, codes: &[[u8; 64]; 4]) -> [S::B; 8] {
    let mut w = [s.splat_byte(0); 8];
    for i in 0..4 {
        (w[2 * i], w[2 * i + 1]) = halves(s, &codes[i]);
    }
    w
}

/// Twice the half bytes of 32 columns.
#[inline(always)]
pub(super) fn doubled_nibbles<S: Simd>(s: S, codes: &[[u8; 64]; 4]) -> [S::B; 8] {
    let (mut w, mask) = ([s.splat_byte(0); 8], s.splat_byte(0x1e));
    for i in 0..4 {
        let v = s.load_bytes(&codes[i]);
        (w[2 * i], w[2 * i + 1]) = (s.and(s.shl_b16(v, 1), mask), s.and(s.shr_b16(v, 3), mask));
    }
    w
}

/// The low and the high half bytes of a vector.
#[inline(always)]
fn halves<S: Simd>(s: S, codes: &[u8; 64]) -> (S::B, S::B) {
    let (v, mask) = (s.load_bytes(codes), s.splat_byte(0x0f));
    (s.and(v, mask), s.and(s.shr_b16(v, 4), mask))
}

/// Moves bit `from` of every byte to bit `to` and clears all but the bits of `mask`.
#[inline(always)]
fn moved<S: Simd>(s: S, v: S::B, from: u32, to: u32, mask: u8) -> S::B {
    let v = if from < to { s.shl_b16(v, to - from) } else { s.shr_b16(v, from - to) };
    s.and(v, s.splat_byte(mask))
}

/// Adds the fifth bits: bit i of `high` belongs to operand i.
#[inline(always)]
pub(super) fn fifth_bits<S: Simd>(s: S, mut w: [S::B; 8], high: &[u8; 64]) -> [S::B; 8] {
    let high = s.load_bytes(high);
    for (i, w) in w.iter_mut().enumerate() {
        *w = s.or(*w, moved(s, high, i as u32, 4, 0x10));
    }
    w
}

/// Codes of 6 bits of 16 columns: bits 2i and 2i + 1 of `high` belong to operand i.
#[inline(always)]
pub(super) fn six_bits<S: Simd>(s: S, sub: &Sub) -> [S::B; 4] {
    let high = s.load_bytes(&sub.high);
    let (a, b) = halves(s, &sub.low[0]);
    let (c, d) = halves(s, &sub.low[1]);
    let mut w = [a, b, c, d];
    for (i, w) in w.iter_mut().enumerate() {
        *w = s.or(*w, moved(s, high, 2 * i as u32, 4, 0x30));
    }
    w
}

/// Scales and offsets of 6 bits of a super-block: byte j % 4 of a lane of vector j / 4.
#[inline(always)]
pub(super) fn scales_and_offsets<S: Simd>(s: S, g: &Head) -> ([S::B; 2], [S::B; 2]) {
    let (mut scales, mut offsets) = ([s.splat_byte(0); 2], [s.splat_byte(0); 2]);
    let high = s.load_bytes(&g.high);
    for half in 0..2 {
        let (scale, offset) = halves(s, &g.low[half]);
        let from = 4 * half as u32;
        scales[half] = s.or(scale, moved(s, high, from, 4, 0x30));
        offsets[half] = s.or(offset, moved(s, high, from + 2, 4, 0x30));
    }
    (scales, offsets)
}
