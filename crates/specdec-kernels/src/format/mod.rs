//! Number formats of weights, as GGUF files hold them.
//!
//! Each module takes one block of a format apart into its scales and codes, and says which
//! numbers they mean. Block formats: `ggml-common.h` of ggml; values: the `gguf` Python package.

mod dense;
pub(crate) mod q4_0;
pub(crate) mod q4_1;
pub(crate) mod q4_k;
pub(crate) mod q5_0;
pub(crate) mod q5_1;
mod q5_k;
pub(crate) mod q6_k;
pub(crate) mod q8_0;
mod quantise;

use std::fmt;

use crate::matrix::MatrixError;

pub(crate) use dense::{BF16, F16, F32};
pub(crate) use q4_0::Q4_0;
pub(crate) use q4_1::Q4_1;
pub(crate) use q4_k::Q4K;
pub(crate) use q5_0::Q5_0;
pub(crate) use q5_1::Q5_1;
pub(crate) use q5_k::Q5K;
pub(crate) use q6_k::Q6K;
pub(crate) use q8_0::Q8_0;
pub use quantise::Target;
pub(crate) use quantise::quantise;

/// How a tensor's numbers are stored.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Format {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// Blocks of 32: d * (q - 8), q of 4 bits.
    Q4_0,
    /// Blocks of 32: d * q + m, q of 4 bits.
    Q4_1,
    /// Blocks of 32: d * (q - 16), q of 5 bits.
    Q5_0,
    /// Blocks of 32: d * q + m, q of 5 bits.
    Q5_1,
    /// Blocks of 32: d * q, q of 8 bits, signed.
    Q8_0,
    /// Blocks of 256: d * s * q - m * t per 32, q of 4 bits, s and t of 6 bits.
    Q4K,
    /// Blocks of 256: d * s * q - m * t per 32, q of 5 bits, s and t of 6 bits.
    Q5K,
    /// Blocks of 256: d * s * (q - 32) per 16, q of 6 bits, s of 8 bits, signed.
    Q6K,
    /// The upper half of IEEE single precision.
    BF16,
}

/// The form of activations that a product with a format reads.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Activation {
    /// Single precision.
    F32,
    /// Signed bytes with one scale for every 32.
    Int8x32,
    /// Signed bytes with one scale for every 256.
    Int8x256,
}

/// Evaluates an expression with the type of a format that is known at run time.
macro_rules! by_format {
    ($format:expr, $quant:ident => $body:expr) => {
        by_format!(@ $format, $quant, $body, F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4K Q5K Q6K)
    };
    (@ $format:expr, $quant:ident, $body:expr, $($type:ident)*) => {
        match $format {
            $($crate::format::Format::$type => {
                type $quant = $crate::format::$type;
                $body
            })*
        }
    };
}

impl Format {
    /// Every format, in the order of its GGUF number.
    pub const ALL: [Format; 11] = [
        Format::F32,
        Format::F16,
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q8_0,
        Format::Q4K,
        Format::Q5K,
        Format::Q6K,
        Format::BF16,
    ];

    /// Weights in a block.
    pub fn block_len(self) -> usize {
        by_format!(self, Q => Q::LEN)
    }

    /// Bytes of a block.
    pub fn block_bytes(self) -> usize {
        match self {
            Format::F32 => 4,
            Format::F16 | Format::BF16 => 2,
            Format::Q4_0 => 18,
            Format::Q4_1 => 20,
            Format::Q5_0 => 22,
            Format::Q5_1 => 24,
            Format::Q8_0 => 34,
            Format::Q4K => 144,
            Format::Q5K => 176,
            Format::Q6K => 210,
        }
    }

    /// The number that stands for the format in a GGUF tensor header.
    pub fn to_ggml(self) -> u32 {
        match self {
            Format::F32 => 0,
            Format::F16 => 1,
            Format::Q4_0 => 2,
            Format::Q4_1 => 3,
            Format::Q5_0 => 6,
            Format::Q5_1 => 7,
            Format::Q8_0 => 8,
            Format::Q4K => 12,
            Format::Q5K => 13,
            Format::Q6K => 14,
            Format::BF16 => 30,
        }
    }

    /// The format that a GGUF tensor header means; `None` if we have no kernels for it.
    pub fn from_ggml(type_id: u32) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.to_ggml() == type_id)
    }

    /// Bytes of a row of `cols` weights; `None` if no whole number of blocks, or too many.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        let blocks = cols / self.block_len();
        cols.is_multiple_of(self.block_len()).then(|| blocks.checked_mul(self.block_bytes()))?
    }

    /// The form of activations that a product with this format reads.
    pub fn activation(self) -> Activation {
        match self {
            Format::F32 | Format::F16 | Format::BF16 => Activation::F32,
            Format::Q4K | Format::Q5K | Format::Q6K => Activation::Int8x256,
            _ => Activation::Int8x32,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::F32 => "F32",
            Format::F16 => "F16",
            Format::BF16 => "BF16",
            Format::Q4_0 => "Q4_0",
            Format::Q4_1 => "Q4_1",
            Format::Q5_0 => "Q5_0",
            Format::Q5_1 => "Q5_1",
            Format::Q8_0 => "Q8_0",
            Format::Q4K => "Q4_K",
            Format::Q5K => "Q5_K",
            Format::Q6K => "Q6_K",
        })
    }
}

/// A format as a type: how one of its blocks is read and what it means.
pub(crate) trait Quant: 'static {
    const FORMAT: Format;
    /// Weights of a block.
    const LEN: usize;
    /// A block taken apart.
    type Block;

    /// Takes the bytes of one block apart.
    fn read(raw: &[u8]) -> Self::Block;

    /// The numbers that a block means, `LEN` of them.
    fn values(block: &Self::Block, out: &mut [f32]);

    /// Whether every scale (or weight) is a finite number.
    fn finite(block: &Self::Block) -> bool;
}

/// De-quantises whole blocks as the file holds them, bit for bit as ggml does.
///
/// # Errors
/// `Blocks` if `raw` is no whole number of blocks, `Length` if `out` has another number of weights.
pub fn dequantise(format: Format, raw: &[u8], out: &mut [f32]) -> Result<(), MatrixError> {
    let blocks = raw.len() / format.block_bytes();
    if !raw.len().is_multiple_of(format.block_bytes())
        || Some(out.len()) != blocks.checked_mul(format.block_len())
    {
        return Err(MatrixError::Output { format, bytes: raw.len(), out: out.len() });
    }
    by_format!(format, Q => {
        let blocks = raw.chunks_exact(format.block_bytes());
        for (raw, out) in blocks.zip(out.chunks_exact_mut(Q::LEN)) {
            Q::values(&Q::read(raw), out);
        }
    });
    Ok(())
}

/// Bits of the little-endian half float at `at`.
fn half(raw: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([raw[at], raw[at + 1]])
}

/// Value of a half float.
fn float(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

/// Whether a half float is neither infinite nor NaN.
fn is_finite(bits: u16) -> bool {
    bits & 0x7c00 != 0x7c00
}

/// Adds the fifth bits to codes of four: bit k of the little-endian word belongs to code k.
fn fifth_bits(word: &[u8], codes: &mut [u8; 32]) {
    for (k, code) in codes.iter_mut().enumerate() {
        *code |= (word[k / 8] >> (k % 8) & 1) << 4;
    }
}

/// Splits bytes into codes of 4 bits: low halves first, then high halves.
fn nibbles(bytes: &[u8], codes: &mut [u8]) {
    let (low, high) = codes.split_at_mut(bytes.len());
    for ((byte, low), high) in bytes.iter().zip(low).zip(high) {
        *low = byte & 15;
        *high = byte >> 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ggml_numbers_round_trip() {
        for format in Format::ALL {
            assert_eq!(Format::from_ggml(format.to_ggml()), Some(format));
        }
        assert_eq!(Format::from_ggml(9), None);
    }

    #[test]
    fn rows_are_whole_blocks() {
        assert_eq!(Format::Q4K.row_bytes(512), Some(288));
        assert_eq!(Format::Q4K.row_bytes(511), None);
        assert_eq!(Format::F32.row_bytes(usize::MAX), None);
    }

    #[test]
    fn wrong_lengths_are_refused() {
        assert!(dequantise(Format::Q4_1, &[0; 21], &mut [0.0; 32]).is_err());
        assert!(dequantise(Format::Q4_1, &[0; 40], &mut [0.0; 32]).is_err());
        assert!(dequantise(Format::Q4_1, &[], &mut []).is_ok());
    }
}
