//! One answer in the making: the state that moves by accepted tokens, one by one.

use crate::cache::SeqCache;
use crate::error::EngineError;
use crate::load::tokenizer::{TextDecoder, Tokenizer};
use crate::request::{Chunk, Completion, RequestMetrics, SamplingParams};
use specdec_core::rng::Key;
use specdec_core::{
    Acceptor, Budget, History, Law, Limits, Method, Processors, Rule, SpecStats, Step, TokenId,
    TokenLogprobs, logprobs,
};
use specdec_kernels::SimdRows;
use std::sync::Arc;
use std::time::Instant;

/// Buffers that every sequence of an engine uses in turn.
#[derive(Default)]
pub struct Scratch {
    /// Passes over a row of the vocabulary.
    pub ops: SimdRows,
    /// The laws of a walk, by depth.
    pub laws: Vec<Law>,
    /// The row in hand, where processors change it.
    pub edited: specdec_core::Scratch,
}

/// A prompt, shared by the answers to it.
#[derive(Clone)]
pub struct Prompt {
    tokens: Arc<[TokenId]>,
    seen: History,
}

impl From<Vec<TokenId>> for Prompt {
    fn from(tokens: Vec<TokenId>) -> Self {
        Self { seen: History::new(&tokens), tokens: tokens.into() }
    }
}

/// What a sequence needs beside its prompt.
pub struct Spec {
    /// Number by which the caller knows the sequence.
    pub id: u64,
    /// How to sample.
    pub params: Arc<SamplingParams>,
    /// The law that `params` ask for.
    pub processors: Arc<Processors>,
    /// Randomness: the request's seed, or one that the engine drew.
    pub key: Key,
    /// Rule of acceptance.
    pub method: Method,
    /// How much may be drafted in a step; `None` decodes plainly.
    pub budget: Option<Budget>,
    /// Positions of the context.
    pub context: usize,
    /// When the request arrived.
    pub arrival: Instant,
}

/// One answer in the making.
pub struct Sequence {
    /// Number by which the caller knows the sequence.
    pub id: u64,
    prompt: Arc<[TokenId]>,
    /// Prompt and answer; nothing before [`Sequence::begin`].
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) cache: SeqCache,
    pub(crate) params: Arc<SamplingParams>,
    pub(crate) processors: Arc<Processors>,
    /// What processors know of the text.
    pub(crate) history: History,
    pub(crate) key: Key,
    pub(crate) method: Method,
    pub(crate) budget: Option<Budget>,
    /// How often it gave way to older ones.
    pub(crate) num_preemptions: usize,
    /// Tokens of the prompt that needed no pass, because their pages were known.
    pub(crate) num_cached_tokens: usize,
    stats: SpecStats,
    context: usize,
    acceptor: Acceptor,
    decoder: TextDecoder,
    chunk: Chunk,
    prompt_logprobs: Vec<TokenLogprobs>,
    arrival: Instant,
    started: Option<Instant>,
    first_token: Option<Instant>,
}

impl Sequence {
    /// A sequence that will continue `prompt` (not empty, shorter than the context).
    pub fn new(prompt: impl Into<Prompt>, spec: Spec, tokenizer: &Tokenizer) -> Self {
        let Prompt { tokens: prompt, seen } = prompt.into();
        let limits = Limits {
            max_tokens: spec.params.max_tokens,
            stop_token_ids: spec.params.stop_token_ids.clone(),
            eos_token_ids: tokenizer.end_ids().to_vec(),
            ignore_eos: spec.params.ignore_eos,
            stop: spec.params.stop.clone(),
            min_tokens: spec.params.sampling.min_tokens,
            include_stop: spec.params.include_stop_str_in_output,
            context_left: spec.context - prompt.len(),
        };
        let nodes = spec.budget.map_or(0, |budget| budget.nodes);
        Self {
            id: spec.id,
            prompt,
            history: seen,
            tokens: Vec::new(),
            cache: SeqCache::default(),
            params: spec.params,
            processors: spec.processors,
            key: spec.key,
            method: spec.method,
            budget: spec.budget,
            num_preemptions: 0,
            num_cached_tokens: 0,
            stats: SpecStats::new(nodes, true),
            context: spec.context,
            acceptor: Acceptor::new(limits),
            decoder: TextDecoder::new(),
            chunk: Chunk::default(),
            prompt_logprobs: Vec::new(),
            arrival: spec.arrival,
            started: None,
            first_token: None,
        }
    }

    /// Gets ready to run. What waits shares its prompt with the other answers to it; what runs has a
    /// text of its own.
    pub(crate) fn begin(&mut self) {
        if self.tokens.is_empty() {
            self.tokens.extend_from_slice(&self.prompt);
        }
    }

    /// Tokens that are known but not in the cache: the rest of the prompt, or the last token drawn.
    pub(crate) fn missing(&self) -> &[TokenId] {
        &self.tokens[self.cache.len()..]
    }

    /// Prompt and answer so far; nothing before it runs.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Its part of the target's cache.
    pub fn cache(&self) -> &SeqCache {
        &self.cache
    }

    /// What the processors know of it.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// How often it gave way to older sequences.
    pub fn num_preemptions(&self) -> usize {
        self.num_preemptions
    }

    /// Tokens of the prompt.
    pub(crate) fn prompt_len(&self) -> usize {
        self.prompt.len()
    }

    /// The answer so far.
    pub fn output(&self) -> &[TokenId] {
        &self.tokens[self.prompt.len()..]
    }

    /// Positions that the whole answer may need at most.
    pub(crate) fn longest(&self) -> usize {
        (self.prompt.len() + self.params.max_tokens).min(self.context)
    }

    /// How much may be drafted now: a tree of depth `d` can emit `d + 1` tokens, and each of them
    /// must fit the answer and the context.
    pub(crate) fn draft_budget(&self) -> Budget {
        let left = self.longest().saturating_sub(self.tokens.len());
        match self.budget {
            Some(budget) if left > 1 => Budget { depth: budget.depth.min(left - 1), ..budget },
            _ => Budget { nodes: 0, depth: 0 },
        }
    }

    /// How its tokens are chosen, for a drafter.
    pub(crate) fn rule(&self) -> Rule<'_> {
        Rule {
            processors: &self.processors,
            history: &self.history,
            method: self.method,
            key: self.key,
        }
    }

    /// Counts a step. Steps of a plain sequence are not speculation's, so they are not counted.
    pub(crate) fn record(&mut self, step: Step) {
        if self.budget.is_some() {
            self.stats.record(step);
        }
    }

    pub(crate) fn mark_started(&mut self) {
        self.started.get_or_insert_with(Instant::now);
    }

    /// The door through which every token enters the answer, drafted or not: text, stop rules,
    /// counts, log-probabilities. `row` holds the logits the token was drawn from. Returns whether
    /// the answer goes on.
    pub(crate) fn emit(
        &mut self,
        token: TokenId,
        from_draft: bool,
        row: &[f32],
        tokenizer: &Tokenizer,
        scratch: &mut Scratch,
    ) -> Result<bool, EngineError> {
        if let Some(best) = self.params.logprobs {
            self.chunk.logprobs.push(logprobs(row, token, best, &mut scratch.ops)?);
        }
        self.first_token.get_or_insert_with(Instant::now);
        self.tokens.push(token);
        self.history.push(token);
        self.chunk.token_ids.push(token);
        self.chunk.num_from_draft += usize::from(from_draft);
        let skip_special = self.params.skip_special_tokens;
        let piece = self.decoder.push(tokenizer.shown_bytes(token, skip_special));
        let ended = self.acceptor.accept(token, piece).is_some();
        if ended {
            self.acceptor.flush(self.decoder.flush());
        }
        Ok(!ended)
    }

    /// Whether the logits of the rows of its prompt are wanted.
    pub(crate) fn reads_aloud(&self) -> bool {
        self.params.prompt_logprobs.is_some() && self.prompt_logprobs.len() + 1 < self.prompt.len()
    }

    /// Takes the logits after the known token at `position`, for the log-probability of the token
    /// of the prompt that follows it.
    pub(crate) fn hear(
        &mut self,
        position: usize,
        row: &[f32],
        scratch: &mut Scratch,
    ) -> Result<(), EngineError> {
        let next = position + 1;
        if let Some(best) = self.params.prompt_logprobs
            && next < self.prompt.len()
            && self.prompt_logprobs.len() < next
        {
            let ops = &mut scratch.ops;
            self.prompt_logprobs.push(logprobs(row, self.tokens[next], best, ops)?);
        }
        Ok(())
    }

    /// What this step added.
    pub(crate) fn take_chunk(&mut self) -> Chunk {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.text = self.acceptor.take_text();
        chunk
    }

    /// The end, once there is one.
    pub(crate) fn completion(&mut self) -> Option<Completion> {
        let finish = self.acceptor.finished()?.clone();
        let now = Instant::now();
        let first = self.first_token.unwrap_or(now);
        let metrics = RequestMetrics {
            num_prompt_tokens: self.prompt.len(),
            num_cached_tokens: self.num_cached_tokens,
            num_generation_tokens: self.output().len(),
            num_preemptions: self.num_preemptions,
            queue_time: self.started.unwrap_or(now) - self.arrival,
            time_to_first_token: first - self.arrival,
            generation_time: now - first,
            speculation: std::mem::take(&mut self.stats),
        };
        let prompt_logprobs = std::mem::take(&mut self.prompt_logprobs);
        Some(Completion { finish, prompt_logprobs, metrics })
    }
}
