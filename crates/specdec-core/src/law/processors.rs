//! The chain of processors: temperature, then min-p, then top-k, then top-p (the order of vLLM),
//! each on the law that the one before has left, renormalised.

use super::Law;
use super::cut::Kept;
use crate::{LawError, ParameterError, RowOps, TokenId, math};

/// Temperatures below this mean greedy, as in vLLM: dividing by them would overflow.
const GREEDY_BELOW: f64 = 1e-5;

/// How a token is chosen from a row of logits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    temperature: f64,
    top_k: u32,
    top_p: f64,
    min_p: f64,
}

impl Default for Sampling {
    /// The model's own law: temperature 1, nothing cut.
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0 }
    }
}

impl Sampling {
    /// Temperature >= 0 (0: greedy), `top_k` (0: off), `top_p` in (0, 1], `min_p` in [0, 1].
    ///
    /// # Errors
    /// Names the first parameter that is out of range.
    pub fn new(
        temperature: f64,
        top_k: u32,
        top_p: f64,
        min_p: f64,
    ) -> Result<Self, ParameterError> {
        let check = |name, value: f64, ok: bool, expected| {
            if ok {
                Ok(())
            } else {
                Err(ParameterError { name, found: value.to_string(), expected })
            }
        };
        let finite = temperature.is_finite() && temperature >= 0.0;
        check("temperature", temperature, finite, "a finite number >= 0")?;
        check("top_p", top_p, top_p > 0.0 && top_p <= 1.0, "a number in (0, 1]")?;
        check("min_p", min_p, (0.0..=1.0).contains(&min_p), "a number in [0, 1]")?;
        Ok(Self { temperature, top_k, top_p, min_p })
    }

    /// The arg max of every row, whatever the other parameters.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    /// Whether the law is always the arg max alone.
    pub fn is_greedy(&self) -> bool {
        self.temperature < GREEDY_BELOW
    }

    /// The temperature.
    pub fn temperature(&self) -> f64 {
        self.temperature
    }
}

/// Writes into `out` the law of the next token, given its row of logits.
///
/// - temperature: weights exp((x - max) / temperature); greedy is one-hot at the largest logit, the
///   lowest id on ties;
/// - min-p keeps tokens with p(x) >= `min_p` * max p;
/// - top-k keeps tokens with a logit >= the k-th largest, ties included;
/// - top-p keeps the shortest prefix of the tokens, sorted by falling weight and rising id, whose
///   probability reaches `top_p`.
///
/// A logit of -inf is an impossible token. `out` may hold any law, such as [`Law::one_hot`]
/// of 0; its buffers are reused.
///
/// # Errors
/// NaN or +inf in the row (the first such token is named), or no logit above -inf.
pub fn law(
    row: &[f32],
    sampling: &Sampling,
    ops: &mut dyn RowOps,
    out: &mut Law,
) -> Result<(), LawError> {
    let (argmax, max) = ops.max(row)?;
    if sampling.is_greedy() {
        out.rewrite(|ids, weights| {
            ids.push(argmax);
            weights.push(1.0);
            (false, 1.0)
        });
        return Ok(());
    }
    out.rewrite(|ids, weights| {
        let mut kept = Kept { ids, weights, dense: true };
        let total = softmax(&mut kept, row, max, sampling, ops);
        if sampling.min_p == 0.0 && sampling.top_p == 1.0 {
            return (kept.dense, total);
        }
        if sampling.min_p > 0.0 {
            kept.min_p(sampling.min_p);
        }
        if sampling.top_p < 1.0 {
            kept.top_p(sampling.top_p);
        }
        (kept.dense, math::sum(kept.weights))
    });
    Ok(())
}

/// Weights of the top-k tokens (of all, if that is off), and their sum.
fn softmax(kept: &mut Kept, row: &[f32], max: f32, by: &Sampling, ops: &mut dyn RowOps) -> f64 {
    let temperature = by.temperature as f32;
    let k = by.top_k as usize;
    if k == 0 || k >= row.len() {
        return ops.exp_sum(row, max, temperature, kept.weights);
    }
    kept.dense = false;
    let threshold = ops.kth_largest(row, k);
    ops.at_least(row, threshold, kept.ids);
    let weight = |&id: &TokenId| math::exp((row[id as usize] - max) / temperature);
    kept.weights.extend(kept.ids.iter().map(|id| f64::from(weight(id))));
    math::sum(kept.weights)
}
