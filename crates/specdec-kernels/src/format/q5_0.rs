//! Q5_0: d (half), 4 bytes with the fifth bits, 16 bytes with the low four bits as in Q4_1.
//! Value: d * (code - 16).

use super::{Format, Quant, fifth_bits, float, half, is_finite, nibbles};

/// The format as a type.
pub(crate) struct Q5_0;

/// 32 weights.
pub(crate) struct Block {
    pub(crate) d: u16,
    pub(crate) codes: [u8; 32],
}

impl Quant for Q5_0 {
    const FORMAT: Format = Format::Q5_0;
    const LEN: usize = 32;
    type Block = Block;

    fn read(raw: &[u8]) -> Block {
        let mut codes = [0; 32];
        nibbles(&raw[6..22], &mut codes);
        fifth_bits(&raw[2..6], &mut codes);
        Block { d: half(raw, 0), codes }
    }

    fn values(block: &Block, out: &mut [f32]) {
        let d = float(block.d);
        for (out, &code) in out.iter_mut().zip(&block.codes) {
            *out = d * (f32::from(code) - 16.0);
        }
    }

    fn finite(block: &Block) -> bool {
        is_finite(block.d)
    }
}
