//! The processors that change logits before any law exists, in their order: allowed ids, bad words,
//! `min_tokens`, bias; then the repetition, frequency and presence penalties.
//!
//! Only the logits they name are touched. Each changes one logit by that logit and the prefix alone,
//! so the order matters token by token, and they run one after the other over few tokens.

use super::Sampling;
use super::history::Prefix;
use crate::TokenId;

/// What a request asks to be done to its logits, sorted for use.
#[derive(Debug, Clone)]
pub(super) struct Edits {
    allowed: Option<Vec<TokenId>>,
    bias: Vec<(TokenId, f32)>,
    bad_words: Vec<Vec<TokenId>>,
    min_tokens: usize,
    end_token_ids: Vec<TokenId>,
    repetition: f32,
    frequency: f32,
    presence: f32,
}

impl Edits {
    /// Of parameters that were checked.
    pub(super) fn new(sampling: &Sampling) -> Self {
        let allowed = sampling.allowed_token_ids.clone().map(|mut ids| {
            ids.sort_unstable();
            ids.dedup();
            ids
        });
        let bias = sampling.logit_bias.iter().map(|(&id, &bias)| (id, bias as f32)).collect();
        Self {
            allowed,
            bias,
            bad_words: sampling.bad_words.clone(),
            min_tokens: sampling.min_tokens,
            end_token_ids: sampling.end_token_ids.clone(),
            repetition: sampling.repetition_penalty as f32,
            frequency: sampling.frequency_penalty as f32,
            presence: sampling.presence_penalty as f32,
        }
    }

    /// The only tokens that exist, ascending, if they are not all; their logits then make up the
    /// row, which is the shorter for it.
    pub(super) fn allowed(&self) -> Option<&[TokenId]> {
        self.allowed.as_deref()
    }

    /// The row after all edits: `row` itself where there is nothing to change, else `buffer`.
    pub(super) fn apply<'a>(
        &'a self,
        row: &'a [f32],
        prefix: Prefix,
        buffer: &'a mut Vec<f32>,
    ) -> &'a [f32] {
        let banned = self.banned(prefix);
        let penalised = self.penalises();
        if self.allowed.is_none() && self.bias.is_empty() && banned.is_empty() && !penalised {
            return row;
        }
        buffer.clear();
        match &self.allowed {
            Some(ids) => buffer.extend(ids.iter().map(|&id| row[id as usize])),
            None => buffer.extend_from_slice(row),
        }
        let mut logits = Logits { allowed: self.allowed.as_deref(), values: buffer };
        for id in banned {
            logits.edit(id, |_| f32::NEG_INFINITY);
        }
        for &(id, bias) in &self.bias {
            logits.edit(id, |x| saturate(x + bias));
        }
        if penalised {
            self.penalise(prefix, &mut logits);
        }
        buffer
    }

    /// Tokens that must not come next.
    fn banned(&self, prefix: Prefix) -> Vec<TokenId> {
        let completed = self.bad_words.iter().filter_map(|word| {
            let (&last, before) = word.split_last()?;
            prefix.ends_with(before).then_some(last)
        });
        let early = prefix.output_len() < self.min_tokens;
        let ends = early.then_some(&self.end_token_ids).into_iter().flatten().copied();
        completed.chain(ends).collect()
    }

    fn penalises(&self) -> bool {
        self.repetition != 1.0 || self.frequency != 0.0 || self.presence != 0.0
    }

    fn penalise(&self, prefix: Prefix, logits: &mut Logits) {
        let repeated =
            |x: f32| saturate(if x > 0.0 { x / self.repetition } else { x * self.repetition });
        for &id in prefix.prompt() {
            logits.edit(id, repeated);
        }
        for (id, count) in prefix.counts() {
            let once = prefix.prompt().binary_search(&id).is_ok();
            let off = self.frequency * count as f32;
            logits.edit(id, |x| {
                let x = if once { x } else { repeated(x) };
                saturate(x - off - self.presence)
            });
        }
    }
}

/// A row of logits, of all tokens or of the allowed ones.
struct Logits<'a> {
    allowed: Option<&'a [TokenId]>,
    values: &'a mut [f32],
}

impl Logits<'_> {
    /// Changes the logit of a token that exists.
    fn edit(&mut self, id: TokenId, change: impl FnOnce(f32) -> f32) {
        let index = match self.allowed {
            Some(allowed) => allowed.binary_search(&id).ok(),
            None => Some(id as usize),
        };
        if let Some(x) = index.and_then(|i| self.values.get_mut(i)) {
            *x = change(*x);
        }
    }
}

/// Plus infinity would read as a damaged row, and so must not come from a large bias. NaN stays.
fn saturate(x: f32) -> f32 {
    if x == f32::INFINITY { f32::MAX } else { x }
}
