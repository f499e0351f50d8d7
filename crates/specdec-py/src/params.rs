//! The checked parameter classes of the Python package, read field by field.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use specdec_core::{Method, Sampling};
use specdec_engine::{EngineError, SamplingParams, Source, Speculation};
use specdec_kernels::Target;

/// What the engine knows of `specdec_rs.SamplingParams`.
#[derive(FromPyObject)]
pub(crate) struct PySamplingParams {
    pub(crate) n: u32,
    temperature: f64,
    top_k: u32,
    top_p: f64,
    min_p: f64,
    seed: Option<u64>,
    max_tokens: Option<usize>,
    stop: Option<Vec<String>>,
    pub(crate) stop_token_ids: Option<Vec<u32>>,
    ignore_eos: bool,
    logprobs: Option<usize>,
    min_tokens: usize,
    include_stop_str_in_output: bool,
    skip_special_tokens: bool,
    presence_penalty: f64,
    frequency_penalty: f64,
    repetition_penalty: f64,
    logit_bias: Option<BTreeMap<u32, f64>>,
    allowed_token_ids: Option<Vec<u32>>,
    bad_words: Option<Vec<String>>,
    prompt_logprobs: Option<usize>,
    prediction: Option<String>,
}

impl PySamplingParams {
    /// What decides a law, but for end tokens and bad words, which take a tokenizer to know.
    pub(crate) fn law(&self) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            logit_bias: self.logit_bias.clone().unwrap_or_default(),
            allowed_token_ids: self.allowed_token_ids.clone(),
            min_tokens: self.min_tokens,
            ..Sampling::default()
        }
    }

    /// The engine's form but for `n`, which the engine checks. No answer is longer than the
    /// `context`.
    pub(crate) fn convert(
        self,
        context: usize,
        encode: impl FnOnce(&str) -> Result<Vec<u32>, EngineError>,
    ) -> Result<SamplingParams, EngineError> {
        Ok(SamplingParams {
            sampling: self.law(),
            bad_words: self.bad_words.unwrap_or_default(),
            seed: self.seed,
            max_tokens: self.max_tokens.map_or(context, |most| most.min(context)),
            stop: self.stop.unwrap_or_default(),
            stop_token_ids: self.stop_token_ids.unwrap_or_default(),
            ignore_eos: self.ignore_eos,
            include_stop_str_in_output: self.include_stop_str_in_output,
            skip_special_tokens: self.skip_special_tokens,
            logprobs: self.logprobs,
            prompt_logprobs: self.prompt_logprobs,
            prediction: self.prediction.as_deref().map(encode).transpose()?.unwrap_or_default(),
        })
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
    quantization: Option<String>,
    automatic: bool,
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
            quantization: self.quantization.as_deref().and_then(target),
            automatic: self.automatic,
        }
    }
}

/// The format of this name that weights can be quantised to at load.
pub(crate) fn target(name: &str) -> Option<Target> {
    match name {
        "q4_0" => Some(Target::Q4_0),
        "q8_0" => Some(Target::Q8_0),
        _ => None,
    }
}
