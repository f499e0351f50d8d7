//! Q5_1: d (half), m (half), 4 bytes with the fifth bits, 16 bytes with the low four as in Q4_1.
//! Value: d * code + m.

use super::{Format, Quant, fifth_bits, float, half, is_finite, nibbles};

/// The format as a type.
pub(crate) struct Q5_1;

/// 32 weights.
pub(crate) struct Block {
    pub(crate) d: u16,
    pub(crate) m: u16,
    pub(crate) codes: [u8; 32],
}

impl Quant for Q5_1 {
    const FORMAT: Format = Format::Q5_1;
    const LEN: usize = 32;
    type Block = Block;

    fn read(raw: &[u8]) -> Block {
        let mut codes = [0; 32];
        nibbles(&raw[8..24], &mut codes);
        fifth_bits(&raw[4..8], &mut codes);
        Block { d: half(raw, 0), m: half(raw, 2), codes }
    }

    fn values(block: &Block, out: &mut [f32]) {
        let (d, m) = (float(block.d), float(block.m));
        for (out, &code) in out.iter_mut().zip(&block.codes) {
            *out = d * f32::from(code) + m;
        }
    }

    fn finite(block: &Block) -> bool {
        is_finite(block.d) && is_finite(block.m)
    }
}
