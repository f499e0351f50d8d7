//! Q5_K: d (half), m (half), scales and offsets as in Q4_K, 32 bytes whose bit j is the fifth bit of
//! sub-block j, 128 bytes with the low four bits. Value in sub-block j of 32:
//! (d * scale[j]) * code - (m * offset[j]).

use super::{Format, Q4K, Quant, q4_k};

/// The format as a type.
pub(crate) struct Q5K;

impl Quant for Q5K {
    const FORMAT: Format = Format::Q5K;
    const LEN: usize = 256;
    /// Codes of 5 bits; all else is as in Q4_K.
    type Block = q4_k::Block;

    fn read(raw: &[u8]) -> q4_k::Block {
        let (head, rest) = raw.split_at(16);
        let (fifth, low) = rest.split_at(32);
        let mut block = q4_k::block(head, low);
        for (j, codes) in block.codes.iter_mut().enumerate() {
            for (code, fifth) in codes.iter_mut().zip(fifth) {
                *code |= (fifth >> j & 1) << 4;
            }
        }
        block
    }

    fn values(block: &q4_k::Block, out: &mut [f32]) {
        Q4K::values(block, out);
    }

    fn finite(block: &q4_k::Block) -> bool {
        Q4K::finite(block)
    }
}
