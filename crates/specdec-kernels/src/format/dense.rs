//! F32: a block is one number.

use super::{Format, Quant};

/// The format as a type.
pub(crate) struct F32;

impl Quant for F32 {
    const FORMAT: Format = Format::F32;
    const LEN: usize = 1;
    type Block = f32;

    fn read(raw: &[u8]) -> f32 {
        f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]])
    }

    fn values(block: &f32, out: &mut [f32]) {
        out[0] = *block;
    }

    fn finite(block: &f32) -> bool {
        block.is_finite()
    }
}
