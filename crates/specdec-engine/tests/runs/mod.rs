//! What the engine's tests share: tiny models on a decoder, and runs of a scheduler.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]

use specdec_core::rng::Key;
use specdec_core::{Budget, Drafter, Method, Processors, Sampling, SpecStats};
use specdec_engine::load::{Gguf, tokenizer::Tokenizer};
use specdec_engine::model::decoder::Decoder;
use specdec_engine::open::{EngineOptions, load_decoder};
use specdec_engine::request::SamplingParams;
use specdec_engine::scheduler::Scheduler;
use specdec_engine::sequence::{Sequence, Spec, Speculator};
use specdec_testkit::gguf::{Format, Role, TinyModel};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The recipes that together hold every format of the three real files.
pub fn recipes() -> Vec<(&'static str, TinyModel)> {
    let mixed = TinyModel {
        format: Format::Q5_0,
        formats: BTreeMap::from([
            (Role::AttnV, Format::Q8_0),
            (Role::FfnDown, Format::Q8_0),
            (Role::Output, Format::Q8_0),
        ]),
        tied: false,
        ..TinyModel::qwen2()
    };
    vec![
        ("llama f32", TinyModel::llama()),
        ("llama q4_1 + q8_0", TinyModel::llama_q4_1()),
        ("qwen2 q5_0 + q8_0", mixed),
        ("qwen2 q4_k + q6_k", TinyModel::qwen2_k()),
    ]
}

/// The decoder and tokenizer of a model file.
pub fn open(path: &Path, adjust: impl FnOnce(&mut EngineOptions)) -> (Decoder, Arc<Tokenizer>) {
    let mut options = EngineOptions::new(path);
    options.num_threads = Some(1);
    adjust(&mut options);
    let file = Gguf::open(path).unwrap();
    let tokenizer = Arc::new(Tokenizer::from_gguf(file.header()).unwrap());
    let (decoder, _) = load_decoder(&options, &file, &mut |_, _| ()).unwrap();
    (decoder, tokenizer)
}

/// A tiny model's decoder.
pub fn decoder(model: &TinyModel, adjust: impl FnOnce(&mut EngineOptions)) -> Decoder {
    open(&model.temp_file(), adjust).0
}

/// One request of a run.
pub struct Ask {
    pub prompt: Vec<u32>,
    pub params: SamplingParams,
    pub drafter: Option<(Box<dyn Drafter + Send>, Budget)>,
}

/// Greedy parameters for `max_tokens` tokens.
pub fn greedy(max_tokens: usize) -> SamplingParams {
    params(0.0, None, max_tokens)
}

/// Parameters at temperature 1 with a seed.
pub fn seeded(seed: u64, max_tokens: usize) -> SamplingParams {
    params(1.0, Some(seed), max_tokens)
}

fn params(temperature: f64, seed: Option<u64>, max_tokens: usize) -> SamplingParams {
    SamplingParams {
        sampling: Sampling { temperature, ..Sampling::default() },
        seed,
        max_tokens,
        stop: Vec::new(),
        stop_token_ids: Vec::new(),
        ignore_eos: true,
        logprobs: None,
    }
}

/// The path of a real model; the Makefile sets the variable.
pub fn real_model(variable: &str) -> std::path::PathBuf {
    let path = std::env::var_os(variable);
    path.unwrap_or_else(|| panic!("{variable} must name the model file; `make test` sets it"))
        .into()
}

/// What became of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub tokens: Vec<u32>,
    pub text: String,
    pub stats: SpecStats,
}

/// A scheduler on a decoder.
pub fn scheduler(decoder: Decoder, tokenizer: &Arc<Tokenizer>) -> Scheduler {
    Scheduler::new(decoder, Arc::clone(tokenizer), 8)
}

/// Runs all requests together to their ends.
pub fn run(scheduler: &mut Scheduler, tokenizer: &Tokenizer, asks: Vec<Ask>) -> Vec<Answer> {
    let config = scheduler.decoder().config();
    let (context, vocab) = (config.context_length, config.vocab);
    let mut answers = vec![Answer::default(); asks.len()];
    for (id, ask) in asks.into_iter().enumerate() {
        scheduler.add(sequence(id as u64, ask, context, vocab, tokenizer));
    }
    while !scheduler.is_idle() {
        for update in scheduler.step().unwrap() {
            let answer = &mut answers[update.id as usize];
            answer.tokens.extend(&update.chunk.token_ids);
            answer.text += &update.chunk.text;
            if let Some(end) = update.end {
                answer.stats = end.unwrap().metrics.speculation;
            }
        }
    }
    let pages = scheduler.decoder().pages();
    assert_eq!(pages.free(), pages.total(), "a page leaked");
    answers
}

fn sequence(id: u64, ask: Ask, context: usize, vocab: usize, tokenizer: &Tokenizer) -> Sequence {
    let method = match (ask.params.sampling.is_greedy(), ask.params.seed) {
        (true, _) => Method::Greedy,
        (false, Some(_)) => Method::Coupled,
        (false, None) => Method::Standard,
    };
    let spec = Spec {
        id,
        key: Key { seed: ask.params.seed.unwrap_or(7), sample: 0 },
        processors: Processors::new(&ask.params.sampling, vocab).unwrap(),
        params: ask.params,
        method,
        speculator: ask.drafter.map(|(drafter, budget)| Speculator { drafter, budget }),
        context,
        arrival: Instant::now(),
    };
    Sequence::new(ask.prompt, spec, tokenizer)
}

/// `n` token ids below `vocab`, a fixed function of `salt`.
pub fn tokens(salt: u64, n: usize, vocab: usize) -> Vec<u32> {
    let noise = specdec_testkit::gguf::Noise::new(salt, "prompt");
    (0..n as u64).map(|i| noise.below(i, vocab as u32)).collect()
}
