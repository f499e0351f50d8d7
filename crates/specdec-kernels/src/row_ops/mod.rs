//! Passes over a row of the vocabulary: `specdec_core`'s [`RowOps`] in SIMD, with the same bits as
//! its scalar definition.

mod largest;
mod select;
mod softmax;
#[cfg(test)]
mod tests;

use specdec_core::row_ops::{RowOps, Scalar};
use specdec_core::{LawError, TokenId};

use crate::level::Level;

/// The passes at one instruction level.
#[derive(Debug, Clone)]
pub struct SimdRows {
    level: Level,
    candidates: Vec<f32>,
}

impl SimdRows {
    /// At `level`, or the best one below it that the machine has.
    pub fn new(level: Level) -> Self {
        Self { level, candidates: Vec::new() }
    }
}

impl Default for SimdRows {
    /// At the machine's fastest level.
    fn default() -> Self {
        Self::new(Level::detect())
    }
}

impl RowOps for SimdRows {
    fn max(&mut self, row: &[f32]) -> Result<(TokenId, f32), LawError> {
        match self.level.run(largest::Max { row }) {
            Some(best) => Ok(best),
            // Something is wrong with the row; the definition finds the words for it.
            None => Scalar::default().max(row),
        }
    }

    fn exp_sum(&mut self, row: &[f32], max: f32, scale: f32) -> f64 {
        self.level.run(softmax::ExpSum { row, max, scale })
    }

    fn exp_into(&mut self, row: &[f32], max: f32, scale: f32, out: &mut Vec<f64>) -> f64 {
        // Every old weight is overwritten, so a vector of the right length costs nothing.
        out.resize(row.len(), 0.0);
        self.level.run(softmax::ExpInto { row, max, scale, out })
    }

    fn at_least(&mut self, row: &[f32], threshold: f32, out: &mut Vec<TokenId>) {
        self.level.run(select::AtLeast { row, threshold, out });
    }

    fn kth_largest(&mut self, row: &[f32], k: usize) -> f32 {
        self.level.run(select::KthLargest { row, k, candidates: &mut self.candidates })
    }
}
