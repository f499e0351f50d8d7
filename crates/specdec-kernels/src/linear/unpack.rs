//! Codes from memory to operands: unsigned bytes, four columns of sixteen rows each.

use crate::layout::{q4_k::Head, q6_k::Sub};
use crate::simd::{Operands, Simd};

/// Bytes of 32 columns.
#[derive(Copy, Clone)]
pub(super) struct Bytes<'a>(pub(super) &'a [[u8; 64]; 8]);

/// Half bytes of 32 columns.
#[derive(Copy, Clone)]
pub(super) struct Nibbles<'a>(pub(super) &'a [[u8; 64]; 4]);

/// Twice the half bytes of 32 columns.
#[derive(Copy, Clone)]
pub(super) struct DoubledNibbles<'a>(pub(super) &'a [[u8; 64]; 4]);

/// Codes of 5 bits of 32 columns: bit i of the high bytes belongs to operand i.
#[derive(Copy, Clone)]
pub(super) struct FiveBits<'a> {
    pub(super) low: &'a [[u8; 64]; 4],
    pub(super) high: &'a [u8; 64],
}

/// Codes of 6 bits of 16 columns: bits 2i and 2i + 1 of the high bytes belong to operand i.
#[derive(Copy, Clone)]
pub(super) struct SixBits<'a>(pub(super) &'a Sub);

/// The same byte everywhere.
#[derive(Copy, Clone)]
pub(super) struct Same(pub(super) u8);

impl<const N: usize> Operands<N> for Same {
    #[inline(always)]
    fn operand<S: Simd>(self, s: S, _: usize) -> S::B {
        s.splat_byte(self.0)
    }
}

impl Operands<8> for Bytes<'_> {
    #[inline(always)]
    fn operand<S: Simd>(self, s: S, i: usize) -> S::B {
        s.load_bytes(&self.0[i])
    }
}

impl Operands<8> for Nibbles<'_> {
    #[inline(always)]
    fn operand<S: Simd>(self, s: S, i: usize) -> S::B {
        half(s, self.0, i)
    }
}

impl Operands<8> for DoubledNibbles<'_> {
    #[inline(always)]
    fn operand<S: Simd>(self, s: S, i: usize) -> S::B {
        let v = s.load_bytes(&self.0[i / 2]);
        s.and(
            if i.is_multiple_of(2) { s.shl_b16(v, 1) } else { s.shr_b16(v, 3) },
            s.splat_byte(0x1e),
        )
    }
}

impl Operands<8> for FiveBits<'_> {
    #[inline(always)]
    fn operand<S: Simd>(self, s: S, i: usize) -> S::B {
        let high = moved(s, s.load_bytes(self.high), i as u32, 4, 0x10);
        s.or(half(s, self.low, i), high)
    }
}

impl Operands<4> for SixBits<'_> {
    #[inline(always)]
    fn operand<S: Simd>(self, s: S, i: usize) -> S::B {
        let high = moved(s, s.load_bytes(&self.0.high), 2 * i as u32, 4, 0x30);
        s.or(half(s, &self.0.low, i), high)
    }
}

/// Half bytes number i: the low ones of vector i / 2, then its high ones.
#[inline(always)]
fn half<S: Simd>(s: S, codes: &[[u8; 64]], i: usize) -> S::B {
    let (low, high) = halves(s, &codes[i / 2]);
    if i.is_multiple_of(2) { low } else { high }
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
