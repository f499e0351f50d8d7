//! Q8_0: d (half), 32 signed bytes. Value: d * code.

use super::{Format, Quant, float, half, is_finite};

/// The format as a type.
pub(crate) struct Q8_0;

/// 32 weights.
pub(crate) struct Block {
    pub(crate) d: u16,
    pub(crate) codes: [i8; 32],
}

impl Quant for Q8_0 {
    const FORMAT: Format = Format::Q8_0;
    const LEN: usize = 32;
    type Block = Block;

    fn read(raw: &[u8]) -> Block {
        Block { d: half(raw, 0), codes: std::array::from_fn(|k| raw[2 + k] as i8) }
    }

    fn values(block: &Block, out: &mut [f32]) {
        let d = float(block.d);
        for (out, &code) in out.iter_mut().zip(&block.codes) {
            *out = d * f32::from(code);
        }
    }

    fn finite(block: &Block) -> bool {
        is_finite(block.d)
    }
}
