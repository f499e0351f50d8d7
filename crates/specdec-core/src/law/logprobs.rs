//! Log-probabilities as they are reported: the target's own log-softmax, before any processor.

use crate::{LawError, RowOps, TokenId, math};

/// The log-probability of an emitted token, and of the likeliest ones (vLLM's `Logprob`).
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprobs {
    /// The emitted token.
    pub token: TokenId,
    /// Its natural log-probability under the raw target, at temperature 1.
    pub logprob: f32,
    /// Its place (1: the best) by falling logit and rising id.
    pub rank: usize,
    /// The likeliest tokens in that order, with their log-probabilities.
    pub top: Vec<(TokenId, f32)>,
}

/// Log-softmax of `row` at `token` and at its `n` best tokens; ties go to the lowest id.
///
/// # Errors
/// As [`Processors::law`](super::Processors::law); a token outside the row.
pub fn logprobs(
    row: &[f32],
    token: TokenId,
    n: usize,
    ops: &mut dyn RowOps,
) -> Result<TokenLogprobs, LawError> {
    let &logit = row.get(token as usize).ok_or(LawError::Token { token, len: row.len() })?;
    let (_, max) = ops.max(row)?;
    let log_total = math::ln(ops.exp_sum(row, max, 1.0));
    let logprob = |x: f32| (f64::from(x) - f64::from(max) - log_total) as f32;
    let before = |&(i, &x): &(usize, &f32)| x > logit || (x == logit && i < token as usize);
    let rank = 1 + row.iter().enumerate().filter(before).count();
    let top = best(row, n, ops).into_iter().map(|id| (id, logprob(row[id as usize]))).collect();
    Ok(TokenLogprobs { token, logprob: logprob(logit), rank, top })
}

/// The `n` best tokens by falling logit and rising id.
fn best(row: &[f32], n: usize, ops: &mut dyn RowOps) -> Vec<TokenId> {
    let n = n.min(row.len());
    let mut ids = Vec::new();
    if n > 0 {
        let threshold = ops.kth_largest(row, n);
        ops.at_least(row, threshold, &mut ids);
        let logit = |id: TokenId| row[id as usize];
        ids.sort_by(|&a, &b| logit(b).total_cmp(&logit(a)).then(a.cmp(&b)));
        ids.truncate(n);
    }
    ids
}
