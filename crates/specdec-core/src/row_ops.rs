//! [`RowOps`]: the passes over a whole row of the vocabulary, behind a trait so that SIMD code can
//! take their place; here the safe scalar version that defines their bits.

use crate::{LawError, TokenId, math};

/// Passes over one row of logits. Every implementation gives the bits of [`Scalar`].
pub trait RowOps {
    /// The largest logit and its token, the lowest id on ties.
    ///
    /// # Errors
    /// NaN or +inf anywhere (the first such token is named), or nothing above -inf.
    fn max(&mut self, row: &[f32]) -> Result<(TokenId, f32), LawError>;

    /// The sum of `exp((x - max) * scale)` over all logits x, over 16 lanes of f64.
    fn exp_sum(&mut self, row: &[f32], max: f32, scale: f32) -> f64;

    /// The same sum, and every `exp((x - max) * scale)` in `out`, which takes the row's length.
    fn exp_into(&mut self, row: &[f32], max: f32, scale: f32, out: &mut Vec<f64>) -> f64;

    /// Appends the ids of all logits >= `threshold` to `out`, ascending.
    fn at_least(&mut self, row: &[f32], threshold: f32, out: &mut Vec<TokenId>);

    /// The k-th largest logit, counted with repetition; 1 <= k <= row length.
    fn kth_largest(&mut self, row: &[f32], k: usize) -> f32;
}

/// The passes in plain Rust: the definition, and the fallback of every machine.
#[derive(Debug, Clone, Default)]
pub struct Scalar {
    best: Vec<f32>,
}

impl RowOps for Scalar {
    fn max(&mut self, row: &[f32]) -> Result<(TokenId, f32), LawError> {
        let mut best = (0, f32::NEG_INFINITY);
        for (i, &value) in row.iter().enumerate() {
            if value.is_nan() || value == f32::INFINITY {
                return Err(LawError::Logit { token: i as TokenId, value });
            }
            if value > best.1 {
                best = (i as TokenId, value);
            }
        }
        if best.1 == f32::NEG_INFINITY {
            return Err(LawError::NoToken { len: row.len() });
        }
        Ok(best)
    }

    fn exp_sum(&mut self, row: &[f32], max: f32, scale: f32) -> f64 {
        let mut lanes = [0.0; math::LANES];
        for chunk in row.chunks(math::LANES) {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane += weight(x, max, scale);
            }
        }
        math::fold(lanes)
    }

    fn exp_into(&mut self, row: &[f32], max: f32, scale: f32, out: &mut Vec<f64>) -> f64 {
        out.clear();
        out.extend(row.iter().map(|&x| weight(x, max, scale)));
        math::sum(out)
    }

    fn at_least(&mut self, row: &[f32], threshold: f32, out: &mut Vec<TokenId>) {
        let above = row.iter().enumerate().filter(|(_, value)| **value >= threshold);
        out.extend(above.map(|(i, _)| i as TokenId));
    }

    fn kth_largest(&mut self, row: &[f32], k: usize) -> f32 {
        // Candidates above the k-th largest so far, cut back to k whenever there are 2k: a pass
        // over the row that keeps few values and selects among few.
        self.best.clear();
        let mut floor = f32::NEG_INFINITY;
        for &value in row {
            if value > floor || self.best.len() < k {
                self.best.push(value);
                if self.best.len() == 2 * k {
                    floor = select(&mut self.best, k);
                }
            }
        }
        select(&mut self.best, k)
    }
}

/// Keeps the k largest values and returns the least of them.
fn select(values: &mut Vec<f32>, k: usize) -> f32 {
    let (_, &mut kth, _) = values.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    values.truncate(k);
    kth
}

/// The weight of a logit in the law at temperature 1 / `scale`, a value of f32.
pub(crate) fn weight(x: f32, max: f32, scale: f32) -> f64 {
    f64::from(math::exp((x - max) * scale))
}
