//! Q4_0: d (half), 16 bytes of codes as in Q4_1. Value: d * (code - 8).

use super::{Format, Quant, float, half, is_finite, nibbles};

/// The format as a type.
pub(crate) struct Q4_0;

/// 32 weights.
pub(crate) struct Block {
    pub(crate) d: u16,
    pub(crate) codes: [u8; 32],
}

impl Quant for Q4_0 {
    const FORMAT: Format = Format::Q4_0;
    const LEN: usize = 32;
    type Block = Block;

    fn read(raw: &[u8]) -> Block {
        let mut codes = [0; 32];
        nibbles(&raw[2..18], &mut codes);
        Block { d: half(raw, 0), codes }
    }

    fn values(block: &Block, out: &mut [f32]) {
        let d = float(block.d);
        for (out, &code) in out.iter_mut().zip(&block.codes) {
            *out = d * (f32::from(code) - 8.0);
        }
    }

    fn finite(block: &Block) -> bool {
        is_finite(block.d)
    }
}
