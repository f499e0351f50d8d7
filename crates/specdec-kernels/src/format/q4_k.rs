//! Q4_K: d (half), m (half), 12 bytes with eight scales and eight offsets of 6 bits, 128 bytes of
//! codes. Value in sub-block j of 32: (d * scale[j]) * code - (m * offset[j]).

use super::{Format, Quant, float, half, is_finite, nibbles};

/// The format as a type.
pub(crate) struct Q4K;

/// 256 weights.
pub(crate) struct Block {
    pub(crate) d: u16,
    pub(crate) m: u16,
    pub(crate) scales: [u8; 8],
    pub(crate) offsets: [u8; 8],
    pub(crate) codes: [[u8; 32]; 8],
}

/// The first four scales and offsets have their 6 bits in one byte; of the others, the low four
/// bits share a byte, and the high two are the top bits of an earlier byte.
fn scales_and_offsets(packed: &[u8]) -> ([u8; 8], [u8; 8]) {
    let (mut scales, mut offsets) = ([0; 8], [0; 8]);
    for j in 0..4 {
        scales[j] = packed[j] & 63;
        offsets[j] = packed[j + 4] & 63;
        scales[j + 4] = packed[j + 8] & 15 | packed[j] >> 6 << 4;
        offsets[j + 4] = packed[j + 8] >> 4 | packed[j + 4] >> 6 << 4;
    }
    (scales, offsets)
}

/// A block of codes of 4 bits; `head` is d, m, scales and offsets, `low` the codes.
pub(super) fn block(head: &[u8], low: &[u8]) -> Block {
    let (scales, offsets) = scales_and_offsets(&head[4..]);
    let mut codes = [[0; 32]; 8];
    let pairs = codes.as_chunks_mut::<2>().0.iter_mut();
    for (pair, bytes) in pairs.zip(low.chunks_exact(32)) {
        nibbles(bytes, pair.as_flattened_mut());
    }
    Block { d: half(head, 0), m: half(head, 2), scales, offsets, codes }
}

impl Quant for Q4K {
    const FORMAT: Format = Format::Q4K;
    const LEN: usize = 256;
    type Block = Block;

    fn read(raw: &[u8]) -> Block {
        let (head, codes) = raw.split_at(16);
        block(head, codes)
    }

    fn values(block: &Block, out: &mut [f32]) {
        let (d, m) = (float(block.d), float(block.m));
        for (j, out) in out.chunks_exact_mut(32).enumerate() {
            let scale = d * f32::from(block.scales[j]);
            let offset = m * f32::from(block.offsets[j]);
            for (out, &code) in out.iter_mut().zip(&block.codes[j]) {
                *out = scale * f32::from(code) - offset;
            }
        }
    }

    fn finite(block: &Block) -> bool {
        is_finite(block.d) && is_finite(block.m)
    }
}
