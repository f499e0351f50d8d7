//! What goes in and what comes out of the engine.

use crate::error::EngineError;
use specdec_core::{Finish, Sampling, SpecStats, TokenId, TokenLogprobs};
use std::time::Duration;

/// Most alternatives that a request may ask log-probabilities of (as in the `OpenAI` API).
pub const MAX_LOGPROBS: usize = 20;

/// Most bytes of a request's stop texts together: all of them are looked for at every token.
pub const MAX_STOP_BYTES: usize = 1 << 16;

/// How to sample one answer.
#[derive(Clone, Debug)]
pub struct SamplingParams {
    /// What decides the law. The engine adds the tokens of `bad_words`, and the end tokens that
    /// `min_tokens` holds back.
    pub sampling: Sampling,
    /// Texts that are never completed, at the beginning of a word or within one; a text of blanks
    /// alone is banned as it is. None of them empty.
    pub bad_words: Vec<String>,
    /// Seed of this request. With one, the text is a function of weights, prompt, parameters and
    /// seed only, with or without speculation.
    pub seed: Option<u64>,
    /// Most tokens to generate, at least 1.
    pub max_tokens: usize,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Tokens that end the answer, beside the model's own.
    pub stop_token_ids: Vec<TokenId>,
    /// Go on after the model's own end tokens.
    pub ignore_eos: bool,
    /// Whether the text that ended the answer is part of it.
    pub include_stop_str_in_output: bool,
    /// Whether control tokens show nothing in the text (and not their names).
    pub skip_special_tokens: bool,
    /// Report the log-probability of each token and of this many best alternatives.
    pub logprobs: Option<usize>,
    /// The same for the tokens of the prompt, from the second on.
    pub prompt_logprobs: Option<usize>,
    /// Tokens that the answer is expected to resemble: drafts, and no change of law.
    pub prediction: Vec<TokenId>,
}

impl Default for SamplingParams {
    /// The model's own law, 256 tokens, nothing reported.
    fn default() -> Self {
        Self {
            sampling: Sampling::default(),
            bad_words: Vec::new(),
            seed: None,
            max_tokens: 256,
            stop: Vec::new(),
            stop_token_ids: Vec::new(),
            ignore_eos: false,
            include_stop_str_in_output: false,
            skip_special_tokens: true,
            logprobs: None,
            prompt_logprobs: None,
            prediction: Vec::new(),
        }
    }
}

impl SamplingParams {
    /// Checks what [`Processors`](specdec_core::Processors) do not.
    ///
    /// # Errors
    /// [`EngineError::Config`] naming the field.
    pub fn validate(&self, vocab: usize) -> Result<(), EngineError> {
        let refuse = |field, found: String, expected: &str| {
            Err(EngineError::Config { field, found, expected: expected.to_owned() })
        };
        if self.max_tokens == 0 {
            return refuse("max_tokens", "0".to_owned(), "at least 1");
        }
        if self.stop.iter().any(String::is_empty) {
            return refuse("stop", "an empty string".to_owned(), "non-empty strings");
        }
        let stop_bytes: usize = self.stop.iter().map(String::len).sum();
        if stop_bytes > MAX_STOP_BYTES {
            let expected = format!("at most {MAX_STOP_BYTES} together");
            return refuse("stop", format!("{stop_bytes} bytes of text"), &expected);
        }
        if let Some(&id) = self.stop_token_ids.iter().find(|&&id| id as usize >= vocab) {
            return refuse("stop_token_ids", id.to_string(), "ids inside the vocabulary");
        }
        if let Some(&id) = self.prediction.iter().find(|&&id| id as usize >= vocab) {
            return refuse("prediction", id.to_string(), "ids inside the vocabulary");
        }
        let reports = [("logprobs", self.logprobs), ("prompt_logprobs", self.prompt_logprobs)];
        for (field, report) in reports {
            if let Some(n) = report.filter(|&n| n > MAX_LOGPROBS) {
                return refuse(field, n.to_string(), "at most 20");
            }
        }
        Ok(())
    }
}

/// What one step added to an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chunk {
    /// New tokens.
    pub token_ids: Vec<TokenId>,
    /// How many of them, from the front, were accepted drafts.
    pub num_from_draft: usize,
    /// New text; lags behind the tokens while a character or a stop string may be incomplete.
    pub text: String,
    /// One entry per new token when the request asked.
    pub logprobs: Vec<TokenLogprobs>,
}

/// The end of an answer.
#[derive(Clone, Debug)]
pub struct Completion {
    /// Why it ended.
    pub finish: Finish,
    /// One entry per token of the prompt but the first, when the request asked.
    pub prompt_logprobs: Vec<TokenLogprobs>,
    /// Times and speculation statistics.
    pub metrics: RequestMetrics,
}

/// Where a request's time went and what speculation did.
#[derive(Clone, Debug, Default)]
pub struct RequestMetrics {
    /// Tokens of the prompt.
    pub num_prompt_tokens: usize,
    /// Those of them that needed no pass: earlier requests had left their keys and values.
    pub num_cached_tokens: usize,
    /// Tokens generated.
    pub num_generation_tokens: usize,
    /// How often the request gave its place in the cache to older ones and was read anew.
    pub num_preemptions: usize,
    /// From arrival to the first step.
    pub queue_time: Duration,
    /// From arrival to the first token.
    pub time_to_first_token: Duration,
    /// From the first token to the last.
    pub generation_time: Duration,
    /// Drafts and what became of them.
    pub speculation: SpecStats,
}

/// What a request's handle receives.
#[derive(Debug)]
pub enum Event {
    /// More tokens.
    Chunk(Chunk),
    /// What the last step added, and the end; nothing follows. One event, so that a step is one
    /// chunk and its receiver knows at once that it is the last.
    Done(Chunk, Box<Completion>),
    /// The request failed; nothing follows. Other requests are not affected unless the error is
    /// [`EngineError::Dead`].
    Failed(EngineError),
}
