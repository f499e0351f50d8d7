//! The whole chain of processors, in the order of vLLM, each on what the one before has left:
//!
//! ```text
//! allowed ids -> bad words -> min_tokens -> logit bias      which tokens exist at all
//! -> repetition, frequency, presence penalties              what was said before
//! -> temperature -> min-p -> top-k -> top-p                 what is left of the tail
//! ```
//!
//! The one definition of the law: plain decoding, drafting and verification ask here.

use super::Law;
use super::cut::Kept;
use super::edits::Edits;
use super::history::Prefix;
use super::sampling::Sampling;
use crate::{LawError, ParameterError, RowOps, TokenId, math};

/// The chain that a request asked for, checked and sorted for use.
#[derive(Debug, Clone)]
pub struct Processors {
    edits: Edits,
    greedy: bool,
    temperature: f32,
    top_k: usize,
    top_p: f64,
    min_p: f64,
    vocab: usize,
}

/// Buffers for a law in the making; handing in the same ones again saves allocations.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    row: Vec<f32>,
}

impl Processors {
    /// The chain of `sampling` for a vocabulary of `vocab` tokens.
    ///
    /// # Errors
    /// Names the first field that is out of range, its value and the range.
    pub fn new(sampling: &Sampling, vocab: usize) -> Result<Self, ParameterError> {
        sampling.validate(vocab)?;
        Ok(Self {
            edits: Edits::new(sampling),
            greedy: sampling.is_greedy(),
            temperature: sampling.temperature as f32,
            top_k: sampling.top_k as usize,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            vocab,
        })
    }

    /// Whether the law is always the arg max alone.
    pub fn is_greedy(&self) -> bool {
        self.greedy
    }

    /// Writes into `out` the law of the token that follows `prefix`, given its row of logits.
    ///
    /// - a row longer than the vocabulary is padded: what is beyond it does not exist;
    /// - temperature: weights exp((x - max) / temperature); greedy is one-hot at the largest logit,
    ///   the lowest id on ties;
    /// - min-p keeps tokens with p(x) >= `min_p` * max p;
    /// - top-k keeps tokens with a logit >= the k-th largest, ties included;
    /// - top-p keeps the shortest prefix of the tokens, sorted by falling weight and rising id,
    ///   whose probability reaches `top_p`.
    ///
    /// A logit of -inf is an impossible token. `out` may hold any law, such as [`Law::one_hot`]
    /// of 0; its buffers are reused.
    ///
    /// # Errors
    /// A row shorter than the vocabulary; NaN or +inf in it (the first such token is named); no
    /// token left.
    pub fn law(
        &self,
        row: &[f32],
        prefix: Prefix,
        ops: &mut dyn RowOps,
        scratch: &mut Scratch,
        out: &mut Law,
    ) -> Result<(), LawError> {
        let row =
            row.get(..self.vocab).ok_or(LawError::Row { len: row.len(), vocab: self.vocab })?;
        let row = self.edits.apply(row, prefix, &mut scratch.row);
        let real = |error| self.name_token(error);
        let (argmax, max) = ops.max(row).map_err(real)?;
        out.rewrite(|ids, weights| {
            if self.greedy {
                ids.push(argmax);
                weights.push(1.0);
                return (false, 1.0);
            }
            self.cut(row, max, ops, ids, weights)
        });
        if let Some(allowed) = self.edits.allowed() {
            out.rename(allowed);
        }
        Ok(())
    }

    /// Temperature and everything after it, on the indices of `row`.
    fn cut(
        &self,
        row: &[f32],
        max: f32,
        ops: &mut dyn RowOps,
        ids: &mut Vec<TokenId>,
        weights: &mut Vec<f64>,
    ) -> (bool, f64) {
        let mut kept = Kept { ids, weights, dense: true };
        let total = self.softmax(&mut kept, row, max, ops);
        if self.min_p == 0.0 && self.top_p == 1.0 {
            return (kept.dense, total);
        }
        if self.min_p > 0.0 {
            kept.min_p(self.min_p);
        }
        if self.top_p < 1.0 {
            kept.top_p(self.top_p);
        }
        (kept.dense, math::sum(kept.weights))
    }

    /// Weights of the top-k tokens (of all, if that is off), and their sum.
    fn softmax(&self, kept: &mut Kept, row: &[f32], max: f32, ops: &mut dyn RowOps) -> f64 {
        if self.top_k == 0 || self.top_k >= row.len() {
            return ops.exp_sum(row, max, self.temperature, kept.weights);
        }
        kept.dense = false;
        let threshold = ops.kth_largest(row, self.top_k);
        ops.at_least(row, threshold, kept.ids);
        let weight = |&id: &TokenId| math::exp((row[id as usize] - max) / self.temperature);
        kept.weights.extend(kept.ids.iter().map(|id| f64::from(weight(id))));
        math::sum(kept.weights)
    }

    /// An error about an index of the row, in terms of tokens.
    fn name_token(&self, error: LawError) -> LawError {
        match (error, self.edits.allowed()) {
            (LawError::Logit { token, value }, Some(allowed)) => {
                LawError::Logit { token: allowed[token as usize], value }
            }
            (error, _) => error,
        }
    }
}
