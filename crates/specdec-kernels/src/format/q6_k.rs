//! Q6_K: 128 bytes with the low four bits, 64 bytes with the high two, 16 signed scales, d (half).
//! Value in sub-block j of 16: (d * scale[j]) * (code - 32).

use super::{Format, Quant, float, half, is_finite, nibbles};

/// The format as a type.
pub(crate) struct Q6K;

/// 256 weights.
pub(crate) struct Block {
    pub(crate) d: u16,
    pub(crate) scales: [i8; 16],
    pub(crate) codes: [[u8; 16]; 16],
}

impl Quant for Q6K {
    const FORMAT: Format = Format::Q6K;
    const LEN: usize = 256;
    type Block = Block;

    fn read(raw: &[u8]) -> Block {
        let (low, rest) = raw.split_at(128);
        let mut codes = [[0; 16]; 16];
        let halves = codes.as_flattened_mut().chunks_exact_mut(128);
        for ((codes, low), high) in halves.zip(low.chunks_exact(64)).zip(rest.chunks_exact(32)) {
            nibbles(low, codes);
            // Byte k holds the high bits of codes k, k + 32, k + 64, k + 96.
            for (k, code) in codes.iter_mut().enumerate() {
                *code |= (high[k % 32] >> (k / 32 * 2) & 3) << 4;
            }
        }
        let scales = std::array::from_fn(|j| rest[64 + j] as i8);
        Block { d: half(rest, 80), scales, codes }
    }

    fn values(block: &Block, out: &mut [f32]) {
        let d = float(block.d);
        for (j, out) in out.chunks_exact_mut(16).enumerate() {
            let scale = d * f32::from(block.scales[j]);
            for (out, &code) in out.iter_mut().zip(&block.codes[j]) {
                *out = scale * (f32::from(code) - 32.0);
            }
        }
    }

    fn finite(block: &Block) -> bool {
        is_finite(block.d)
    }
}
