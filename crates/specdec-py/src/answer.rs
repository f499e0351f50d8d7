//! What the engine tells, as plain dicts for Python.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use specdec_core::{FinishReason, SpecStats, StepEnd, Stop, TokenLogprobs};
use specdec_engine::memory::MemoryReport;
use specdec_engine::metrics::EngineMetrics;
use specdec_engine::{Chunk, Completion};

/// What one step added to an answer, and the end if it brought it.
#[derive(IntoPyObject)]
pub(crate) struct PyStep {
    text: String,
    token_ids: Vec<u32>,
    from_draft: usize,
    logprobs: Vec<PyLogprobs>,
    end: Option<PyEnd>,
}

impl PyStep {
    /// A step, with the end that came with it.
    pub(crate) fn new(chunk: Chunk, end: Option<Completion>) -> Self {
        Self {
            text: chunk.text,
            token_ids: chunk.token_ids,
            from_draft: chunk.num_from_draft,
            logprobs: chunk.logprobs.into_iter().map(Into::into).collect(),
            end: end.map(Into::into),
        }
    }
}

/// One token's place in the raw law, and the likeliest tokens.
#[derive(IntoPyObject)]
struct PyLogprobs {
    token: u32,
    logprob: f32,
    rank: usize,
    top: Vec<(u32, f32)>,
}

impl From<TokenLogprobs> for PyLogprobs {
    fn from(of: TokenLogprobs) -> Self {
        Self { token: of.token, logprob: of.logprob, rank: of.rank, top: of.top }
    }
}

/// The end of an answer; times in seconds.
#[derive(IntoPyObject)]
pub(crate) struct PyEnd {
    finish_reason: &'static str,
    stop_token: Option<u32>,
    stop_text: Option<String>,
    queue_time: f64,
    time_to_first_token: f64,
    generation_time: f64,
    num_cached_tokens: usize,
    num_preemptions: usize,
    prompt_logprobs: Vec<PyLogprobs>,
    speculation: PySpecStats,
}

impl From<Completion> for PyEnd {
    fn from(end: Completion) -> Self {
        let (stop_token, stop_text) = match end.finish.stop {
            Some(Stop::Token(token)) => (Some(token), None),
            Some(Stop::Text(text)) => (None, Some(text)),
            None => (None, None),
        };
        Self {
            finish_reason: match end.finish.reason {
                FinishReason::Stop => "stop",
                FinishReason::Length => "length",
                FinishReason::Abort => "abort",
                FinishReason::Error => "error",
            },
            stop_token,
            stop_text,
            queue_time: end.metrics.queue_time.as_secs_f64(),
            time_to_first_token: end.metrics.time_to_first_token.as_secs_f64(),
            generation_time: end.metrics.generation_time.as_secs_f64(),
            num_cached_tokens: end.metrics.num_cached_tokens,
            num_preemptions: end.metrics.num_preemptions,
            prompt_logprobs: end.prompt_logprobs.into_iter().map(Into::into).collect(),
            speculation: end.metrics.speculation.into(),
        }
    }
}

/// Fields of `specdec_rs.SpeculativeDecodingStats`, under their names there.
#[derive(IntoPyObject)]
struct PySpecStats {
    mean_acceptance_length: f64,
    draft_acceptance_rate: Option<f64>,
    acceptance_histogram: Vec<u64>,
    acceptance_histogram_by_draft_length: BTreeMap<usize, Vec<u64>>,
    num_spec_steps: u64,
    num_plain_steps: u64,
    num_accepted_draft_tokens: u64,
    num_draft_tokens: u64,
    num_spec_tokens: usize,
    max_tree_depth: usize,
    num_draft_tokens_per_pos: Vec<u64>,
    num_accepted_tokens_per_pos: Vec<u64>,
    draft_stop_reasons: BTreeMap<&'static str, u64>,
}

impl From<SpecStats> for PySpecStats {
    fn from(stats: SpecStats) -> Self {
        let ends = [
            ("rejected", StepEnd::Rejected),
            ("all_accepted", StepEnd::AllAccepted),
            ("no_draft", StepEnd::NoDraft),
            ("budget", StepEnd::Budget),
            ("prompt", StepEnd::Prompt),
            ("finished", StepEnd::Finished),
        ];
        let drafted = stats.num_draft_tokens > 0;
        let by_length = stats.acceptance_histogram_by_draft_length.iter().cloned().enumerate();
        Self {
            mean_acceptance_length: stats.mean_acceptance_length(),
            draft_acceptance_rate: drafted.then(|| stats.draft_acceptance_rate()),
            draft_stop_reasons: ends.map(|(name, end)| (name, stats.ended(end))).into(),
            acceptance_histogram_by_draft_length: by_length
                .filter(|(_, h)| !h.is_empty())
                .collect(),
            num_spec_steps: stats.num_spec_steps,
            num_plain_steps: stats.num_plain_steps,
            num_accepted_draft_tokens: stats.num_accepted_draft_tokens,
            num_draft_tokens: stats.num_draft_tokens,
            num_spec_tokens: stats.drafted_per_position.len(),
            max_tree_depth: stats.max_tree_depth,
            acceptance_histogram: stats.acceptance_histogram,
            num_draft_tokens_per_pos: stats.drafted_per_position,
            num_accepted_tokens_per_pos: stats.accepted_per_position,
        }
    }
}

/// Fields of `specdec_rs.EngineMetrics`, under their names there; times in seconds.
#[derive(IntoPyObject)]
pub(crate) struct PyEngineMetrics {
    num_steps: u64,
    num_draft_failures: u64,
    num_preemptions: u64,
    prefix_cache_queries: u64,
    prefix_cache_hits: u64,
    draft_time: f64,
    forward_time: f64,
    verify_time: f64,
    commit_time: f64,
    forward_by_rows: BTreeMap<usize, (u64, f64)>,
}

impl From<EngineMetrics> for PyEngineMetrics {
    fn from(sums: EngineMetrics) -> Self {
        let by_rows = sums.forward_by_rows.into_iter();
        Self {
            num_steps: sums.steps,
            num_draft_failures: sums.draft_failures,
            num_preemptions: sums.preemptions,
            prefix_cache_queries: sums.prefix_cache_queries,
            prefix_cache_hits: sums.prefix_cache_hits,
            draft_time: sums.draft.as_secs_f64(),
            forward_time: sums.forward.as_secs_f64(),
            verify_time: sums.verify.as_secs_f64(),
            commit_time: sums.commit.as_secs_f64(),
            forward_by_rows: by_rows
                .map(|(rows, (passes, time))| (rows, (passes, time.as_secs_f64())))
                .collect(),
        }
    }
}

/// Fields of `specdec_rs.MemoryReport`, under their names there.
#[derive(IntoPyObject)]
pub(crate) struct PyMemoryReport {
    budget: Option<usize>,
    weights: usize,
    kv_cache: usize,
    activations: usize,
    draft_weights: usize,
    draft_kv_cache: usize,
    draft_activations: usize,
    kv_cache_tokens: usize,
    draft_kv_cache_tokens: usize,
    kv_tokens_lost_to_draft: usize,
    draft_left_out: bool,
}

impl From<&MemoryReport> for PyMemoryReport {
    fn from(report: &MemoryReport) -> Self {
        Self {
            budget: report.budget,
            weights: report.target.weights,
            kv_cache: report.target.kv,
            activations: report.target.activations,
            draft_weights: report.draft.weights,
            draft_kv_cache: report.draft.kv,
            draft_activations: report.draft.activations,
            kv_cache_tokens: report.kv_tokens,
            draft_kv_cache_tokens: report.draft_kv_tokens,
            kv_tokens_lost_to_draft: report.kv_tokens_lost_to_draft,
            draft_left_out: report.draft_left_out,
        }
    }
}
