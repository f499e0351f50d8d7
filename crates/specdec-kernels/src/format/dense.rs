//! Dense formats: a block is one number.

use super::{Format, Quant, float, half, is_finite};

/// IEEE single precision as a type.
pub(crate) struct F32;

/// IEEE half precision as a type.
pub(crate) struct F16;

/// The upper half of IEEE single precision as a type.
pub(crate) struct BF16;

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

impl Quant for F16 {
    const FORMAT: Format = Format::F16;
    const LEN: usize = 1;
    type Block = u16;

    fn read(raw: &[u8]) -> u16 {
        half(raw, 0)
    }

    fn values(block: &u16, out: &mut [f32]) {
        out[0] = float(*block);
    }

    fn finite(block: &u16) -> bool {
        is_finite(*block)
    }
}

impl Quant for BF16 {
    const FORMAT: Format = Format::BF16;
    const LEN: usize = 1;
    type Block = u16;

    fn read(raw: &[u8]) -> u16 {
        half(raw, 0)
    }

    fn values(block: &u16, out: &mut [f32]) {
        out[0] = f32::from_bits(u32::from(*block) << 16);
    }

    fn finite(block: &u16) -> bool {
        block & 0x7f80 != 0x7f80
    }
}
