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
use crate::row_ops::weight;
use crate::{LawError, ParameterError, RowOps, TokenId, math};

/// The chain that a request asked for, checked and sorted for use.
#[derive(Debug, Clone)]
pub struct Processors {
    edits: Edits,
    greedy: bool,
    /// 1 / temperature.
    scale: f32,
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
            // Not below any normal number: -inf times 0 would be NaN.
            scale: ((1.0 / sampling.temperature) as f32).max(f32::MIN_POSITIVE),
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
    /// - temperature: weights exp((x - max) * (1 / temperature)); greedy is one-hot at the largest logit,
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
                weights.clear();
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
    ///
    /// Of the tokens that a cut may keep there are few, so they are picked by their logits first;
    /// weights are made for them alone.
    fn cut(
        &self,
        row: &[f32],
        max: f32,
        ops: &mut dyn RowOps,
        ids: &mut Vec<TokenId>,
        weights: &mut Vec<f64>,
    ) -> (bool, f64) {
        let top_k = (1..row.len()).contains(&self.top_k);
        if self.min_p == 0.0 && !top_k && self.top_p == 1.0 {
            return (true, ops.exp_into(row, max, self.scale, weights));
        }
        let mut floor = f32::NEG_INFINITY;
        if self.min_p > 0.0 {
            floor = self.logit(self.min_p, max);
        }
        if top_k {
            floor = floor.max(ops.kth_largest(row, self.top_k));
        }
        let mut total = None;
        if floor == f32::NEG_INFINITY {
            // Tokens below this have less than 1 - top_p of the mass, all together.
            let sum = ops.exp_sum(row, max, self.scale);
            floor = self.logit((1.0 - self.top_p) * sum / row.len() as f64, max);
            total = Some(sum);
        }
        ops.at_least(row, floor, ids);
        weights.clear();
        weights.extend(ids.iter().map(|&i| weight(row[i as usize], max, self.scale)));
        let mut kept = Kept { ids, weights };
        if self.min_p > 0.0 {
            kept.min_p(self.min_p);
        }
        if self.top_p < 1.0 {
            let total = total.unwrap_or_else(|| math::sum(kept.weights));
            kept.top_p(self.top_p * total);
        }
        (false, math::sum(kept.weights))
    }

    /// A logit that is surely no larger than any with a weight of at least `weight` > 0.
    fn logit(&self, weight: f64, max: f32) -> f32 {
        // The slack is a hundred times the rounding of exp and of its argument.
        let below = (math::ln(weight.max(f64::MIN_POSITIVE)) - 1e-3) / f64::from(self.scale);
        let logit = (f64::from(max) + below) as f32;
        // (x - max) rounds by half a unit of x, and so did this.
        logit.next_down().next_down()
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
