//! [`Sampling`]: the parameters of a request that decide its law, in vLLM's words.

use std::collections::BTreeMap;

use crate::{ParameterError, TokenId};

/// Temperatures below this mean greedy, as in vLLM: dividing by them would overflow.
const GREEDY_BELOW: f64 = 1e-5;

/// How a token is chosen from a row of logits. The default is the model's own law.
///
/// The fields are what was asked for; [`Processors::new`](super::Processors::new) checks them.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it, a finite number >= 0; 0 is greedy.
    pub temperature: f64,
    /// Keep the tokens whose logit is at least the k-th largest; 0: all.
    pub top_k: u32,
    /// Keep the likeliest tokens until their mass reaches this, in (0, 1].
    pub top_p: f64,
    /// Keep tokens at least this many times as likely as the likeliest one, in [0, 1].
    pub min_p: f64,
    /// Logits of tokens in prompt or output are divided by it where positive, multiplied where
    /// negative (Keskar et al., arXiv:1909.05858); above 0.
    pub repetition_penalty: f64,
    /// Taken off a token's logit for each occurrence in the output, in [-2, 2].
    pub frequency_penalty: f64,
    /// Taken off a token's logit if it occurs in the output, in [-2, 2].
    pub presence_penalty: f64,
    /// Added to the logits of these tokens; finite.
    pub logit_bias: BTreeMap<TokenId, f64>,
    /// The only tokens that exist; at least one.
    pub allowed_token_ids: Option<Vec<TokenId>>,
    /// Sequences that are never completed: the last token of one is banned where the ones before it
    /// end the output. None of them empty.
    pub bad_words: Vec<Vec<TokenId>>,
    /// Number of tokens before which `end_token_ids` are banned.
    pub min_tokens: usize,
    /// What `min_tokens` holds back: the model's own end tokens and the request's.
    pub end_token_ids: Vec<TokenId>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            logit_bias: BTreeMap::new(),
            allowed_token_ids: None,
            bad_words: Vec::new(),
            min_tokens: 0,
            end_token_ids: Vec::new(),
        }
    }
}

impl Sampling {
    /// The arg max of every row.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    /// Whether the law is always the arg max alone.
    pub fn is_greedy(&self) -> bool {
        self.temperature < GREEDY_BELOW
    }

    /// Checks every field for a vocabulary of `vocab` tokens.
    ///
    /// # Errors
    /// Names the first field that is out of range, its value and the range.
    pub fn validate(&self, vocab: usize) -> Result<(), ParameterError> {
        self.validate_numbers()?;
        let ids = [
            ("allowed_token_ids", self.allowed_token_ids.as_deref().unwrap_or_default()),
            ("stop_token_ids", &self.end_token_ids),
        ];
        for (name, ids) in ids {
            check_ids(name, ids.iter().copied(), vocab)?;
        }
        check_ids("logit_bias", self.logit_bias.keys().copied(), vocab)?;
        check_ids("bad_words", self.bad_words.iter().flatten().copied(), vocab)?;
        let nothing = self.allowed_token_ids.as_ref().is_some_and(Vec::is_empty);
        check("allowed_token_ids", &"empty", !nothing, "at least one token id")?;
        let empty = self.bad_words.iter().any(Vec::is_empty);
        check("bad_words", &"a word without tokens", !empty, "words of at least one token")
    }

    fn validate_numbers(&self) -> Result<(), ParameterError> {
        let Self { temperature, top_p, min_p, .. } = self;
        let finite = temperature.is_finite() && *temperature >= 0.0;
        check("temperature", temperature, finite, "a finite number >= 0")?;
        check("top_p", top_p, *top_p > 0.0 && *top_p <= 1.0, "a number in (0, 1]")?;
        check("min_p", min_p, (0.0..=1.0).contains(min_p), "a number in [0, 1]")?;
        // As the f32 that logits meet: neither 0 nor infinite.
        let factor = &self.repetition_penalty;
        let usable = *factor as f32 > 0.0 && (*factor as f32).is_finite();
        check("repetition_penalty", factor, usable, "a finite number above 0")?;
        let penalties = [
            ("frequency_penalty", self.frequency_penalty),
            ("presence_penalty", self.presence_penalty),
        ];
        for (name, penalty) in penalties {
            check(name, &penalty, (-2.0..=2.0).contains(&penalty), "a number in [-2, 2]")?;
        }
        for bias in self.logit_bias.values() {
            check("logit_bias", bias, (*bias as f32).is_finite(), "finite numbers (f32)")?;
        }
        Ok(())
    }
}

fn check(
    name: &'static str,
    value: &dyn std::fmt::Display,
    ok: bool,
    expected: &'static str,
) -> Result<(), ParameterError> {
    if ok { Ok(()) } else { Err(ParameterError::new(name, value.to_string(), expected)) }
}

fn check_ids(
    name: &'static str,
    mut ids: impl Iterator<Item = TokenId>,
    vocab: usize,
) -> Result<(), ParameterError> {
    match ids.find(|&id| id as usize >= vocab) {
        None => Ok(()),
        Some(id) => {
            let expected = format!("token ids below {vocab}, the size of the vocabulary");
            Err(ParameterError::new(name, format!("token {id}"), expected))
        }
    }
}
