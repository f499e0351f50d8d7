//! Quantised matrices, packed for the kernels.

use crate::format::Format;

/// Why weights were refused.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// `dequantise` was given room for another number of weights than there are.
    #[error(
        "{bytes} bytes of {format} do not make {out} weights: pass whole blocks and their number of weights"
    )]
    Output {
        /// Format of the bytes.
        format: Format,
        /// Bytes given.
        bytes: usize,
        /// Weights asked for.
        out: usize,
    },
}
