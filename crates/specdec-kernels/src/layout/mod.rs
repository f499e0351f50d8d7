//! Packed weights: how the kernels want a format to lie in memory.
//!
//! Sixteen rows of a matrix make a panel; an output element is a SIMD lane. A panel is a sequence
//! of groups along the columns (64 of them for formats with blocks of 32, 256 for K-quants, 1 for
//! dense ones), and a group holds, in the order in which a kernel reads it, first the scales of its
//! sixteen rows, then their codes. Codes stand as `[u8; 64]`: four consecutive columns of row 0,
//! of row 1, .. of row 15, which is one operand of an integer dot product. Signed codes are stored
//! with an offset, so that all are unsigned.

mod codes;
pub(crate) mod dense;
pub(crate) mod q4_0;
pub(crate) mod q4_1;
pub(crate) mod q4_k;
pub(crate) mod q5_0;
pub(crate) mod q5_1;
pub(crate) mod q5_k;
pub(crate) mod q6_k;
pub(crate) mod q8_0;

use crate::format::Quant;

/// Rows of a panel.
pub(crate) const ROWS: usize = 16;

/// Where a format's blocks lie in a group.
pub(crate) trait Layout: Quant {
    /// Sixteen rows of `BLOCKS` blocks.
    type Group: Copy + Send + Sync + 'static;
    /// Blocks of one row in a group.
    const BLOCKS: usize;
    /// A group of zero weights.
    const ZERO: Self::Group;

    /// Puts a block of row `row` at place `at` of a group.
    fn insert(group: &mut Self::Group, at: usize, row: usize, block: &Self::Block);

    /// Takes it out again, as it was.
    fn extract(group: &Self::Group, at: usize, row: usize) -> Self::Block;

    /// Groups of a panel of `cols` columns (whole blocks).
    fn groups(cols: usize) -> usize {
        cols.div_ceil(Self::LEN * Self::BLOCKS)
    }
}
