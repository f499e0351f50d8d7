//! The checked parameter classes of the Python package, read field by field.

use std::path::PathBuf;

use pyo3::prelude::*;
use specdec_core::{Method, Sampling};
use specdec_engine::{SamplingParams, Source, Speculation};

/// What the engine knows of `specdec_rs.SamplingParams`.
#[derive(FromPyObject)]
pub(crate) struct PySamplingParams {
    temperature: f64,
    top_k: u32,
    top_p: f64,
    min_p: f64,
    seed: Option<u64>,
    max_tokens: Option<usize>,
    stop: Option<Vec<String>>,
    stop_token_ids: Option<Vec<u32>>,
    ignore_eos: bool,
    logprobs: Option<usize>,
}

impl PySamplingParams {
    /// The engine's form, which the engine checks. No answer is longer than the `context`.
    pub(crate) fn convert(self, context: usize) -> SamplingParams {
        let (temperature, top_k) = (self.temperature, self.top_k);
        let (top_p, min_p) = (self.top_p, self.min_p);
        SamplingParams {
            sampling: Sampling { temperature, top_k, top_p, min_p, ..Sampling::default() },
            seed: self.seed,
            max_tokens: self.max_tokens.map_or(context, |most| most.min(context)),
            stop: self.stop.unwrap_or_default(),
            stop_token_ids: self.stop_token_ids.unwrap_or_default(),
            ignore_eos: self.ignore_eos,
            logprobs: self.logprobs,
        }
    }
}

/// What the engine knows of `specdec_rs.SpeculativeConfig`; None is the engine's own choice.
#[derive(FromPyObject)]
pub(crate) struct PySpeculativeConfig {
    sources: Vec<String>,
    num_speculative_tokens: Option<usize>,
    prompt_lookup_min: Option<usize>,
    prompt_lookup_max: Option<usize>,
    branching_factor: Option<usize>,
    tree_depth: Option<usize>,
    draft_sample_method: Option<String>,
    rejection_sample_method: String,
}

impl PySpeculativeConfig {
    /// The engine's form; `draft_model` is the file behind the config's `model`.
    pub(crate) fn convert(self, draft_model: Option<PathBuf>) -> Speculation {
        let own = Speculation::default();
        let ngram = self.sources.iter().any(|source| source == "ngram").then_some(Source::Ngram);
        let lookup = |given: Option<usize>, own| given.unwrap_or(own);
        Speculation {
            sources: draft_model.map(Source::DraftModel).into_iter().chain(ngram).collect(),
            num_speculative_tokens: lookup(self.num_speculative_tokens, own.num_speculative_tokens),
            prompt_lookup_min: lookup(self.prompt_lookup_min, own.prompt_lookup_min),
            prompt_lookup_max: lookup(self.prompt_lookup_max, own.prompt_lookup_max),
            branching_factor: lookup(self.branching_factor, own.branching_factor),
            tree_depth: self.tree_depth,
            method: match self.rejection_sample_method.as_str() {
                "standard" => Some(Method::Standard),
                "block" | "traversal" => Some(Method::Traversal),
                "coupled" => Some(Method::Coupled),
                _ => None,
            },
            draws: self.draft_sample_method.as_deref() != Some("greedy"),
        }
    }
}
