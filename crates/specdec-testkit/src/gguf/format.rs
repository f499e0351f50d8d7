//! The weight formats that a tiny model can be written in.

use serde::{Deserialize, Serialize};

/// A tensor's storage format, named as GGUF names it (in recipes in lower case).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Plain floats.
    F32,
    /// 32 weights `d * q + m`, q of 4 bits.
    Q4_1,
    /// 32 weights `d * (q - 16)`, q of 5 bits.
    Q5_0,
    /// 32 weights `d * q`, q a signed byte.
    Q8_0,
    /// 256 weights `d * sc * q - dmin * m` in 8 sub-blocks, q of 4 bits, sc and m of 6.
    #[serde(rename = "q4_k")]
    Q4K,
    /// 256 weights `d * sc * (q - 32)` in 16 sub-blocks, q of 6 bits, sc a signed byte.
    #[serde(rename = "q6_k")]
    Q6K,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::F32, Self::Q4_1, Self::Q5_0, Self::Q8_0, Self::Q4K, Self::Q6K];

    /// The type number in a tensor's header (ggml's enumeration).
    pub fn ggml_type(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::Q4_1 => 3,
            Self::Q5_0 => 6,
            Self::Q8_0 => 8,
            Self::Q4K => 12,
            Self::Q6K => 14,
        }
    }

    /// Weights in one block; a row must be a whole number of blocks.
    pub fn block_len(self) -> usize {
        match self {
            Self::F32 => 1,
            Self::Q4_1 | Self::Q5_0 | Self::Q8_0 => 32,
            Self::Q4K | Self::Q6K => 256,
        }
    }

    /// Offset in a block of the f16 scale (of the value itself for F32).
    pub fn scale_offset(self) -> usize {
        if self == Self::Q6K { 208 } else { 0 }
    }

    /// Bytes of one block.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q8_0 => 34,
            Self::Q4K => 144,
            Self::Q6K => 210,
        }
    }
}
