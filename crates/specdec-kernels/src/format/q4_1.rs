//! Q4_1: d (half), m (half), 16 bytes of codes; code i is the low half of byte i, code i + 16 the
//! high one. Value: d * code + m.

use super::{Format, Quant, float, half, is_finite, nibbles};

/// The format as a type.
pub(crate) struct Q4_1;

/// 32 weights.
pub(crate) struct Block {
    pub(crate) d: u16,
    pub(crate) m: u16,
    pub(crate) codes: [u8; 32],
}

impl Quant for Q4_1 {
    const FORMAT: Format = Format::Q4_1;
    const LEN: usize = 32;
    type Block = Block;

    fn read(raw: &[u8]) -> Block {
        let mut codes = [0; 32];
        nibbles(&raw[4..20], &mut codes);
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
