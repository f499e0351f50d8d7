//! What the engine's tests share: tiny models on a decoder, and runs of a scheduler.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]

pub mod engines;
pub mod hooked;
pub mod sampled;
pub mod sources;

use specdec_core::rng::Key;
use specdec_core::{
    Ask as CoreAsk, Budget, DraftError, Drafter, Method, Processors, Sampling, SpecStats,
    TokenLogprobs,
};
use specdec_engine::load::{Gguf, tokenizer::Tokenizer};
use specdec_engine::model::decoder::Decoder;
use specdec_engine::open::{EngineOptions, load_decoder};
use specdec_engine::request::SamplingParams;
use specdec_engine::scheduler::Scheduler;
pub use specdec_engine::scheduler::Update;
use specdec_engine::sequence::{Sequence, Spec};
use specdec_testkit::gguf::{Format, Role, TinyModel};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
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
        ("gemma3 f32", TinyModel::gemma3()),
        ("phi3 f32", TinyModel::phi3()),
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
    /// A drafter of its own; `None`: the runner's.
    pub drafter: Option<Box<dyn Drafter>>,
    /// `None` decodes plainly.
    pub budget: Option<Budget>,
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
        ignore_eos: true,
        ..SamplingParams::default()
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
    pub prompt_logprobs: Vec<TokenLogprobs>,
    pub cached: usize,
    pub preemptions: usize,
}

impl Answer {
    /// What a step added.
    pub fn add(&mut self, update: Update) {
        self.tokens.extend(&update.chunk.token_ids);
        self.text += &update.chunk.text;
        if let Some(end) = update.end {
            let end = end.unwrap();
            self.stats = end.metrics.speculation;
            self.prompt_logprobs = end.prompt_logprobs;
            self.cached = end.metrics.num_cached_tokens;
            self.preemptions = end.metrics.num_preemptions;
        }
    }
}

/// A scheduler, and the drafters of its requests.
pub struct Runner {
    pub scheduler: Scheduler,
    pub own: Arc<Mutex<Own>>,
}

pub type Own = HashMap<u64, Box<dyn Drafter>>;

/// Asks each request's own drafter, and `others` for those without one.
struct ById {
    own: Arc<Mutex<Own>>,
    others: Option<Box<dyn Drafter>>,
}

impl Drafter for ById {
    fn propose(&mut self, asks: &mut [CoreAsk<'_>]) -> Result<(), DraftError> {
        let mut own = self.own.lock().unwrap();
        for ask in asks.iter_mut() {
            if let Some(drafter) = own.get_mut(&ask.id) {
                drafter.propose(std::slice::from_mut(ask))?;
            }
        }
        match &mut self.others {
            Some(others) if own.is_empty() => others.propose(asks),
            _ => Ok(()),
        }
    }

    fn commit(&mut self, id: u64, path: &[usize]) -> Result<(), DraftError> {
        match (self.own.lock().unwrap().get_mut(&id), &mut self.others) {
            (Some(drafter), _) | (None, Some(drafter)) => drafter.commit(id, path),
            _ => Ok(()),
        }
    }

    fn release(&mut self, id: u64) {
        if let Some(own) = self.own.lock().unwrap().get_mut(&id) {
            own.release(id);
        }
        if let Some(others) = &mut self.others {
            others.release(id);
        }
    }
}

/// A scheduler on a decoder.
pub fn scheduler(decoder: Decoder, tokenizer: &Arc<Tokenizer>) -> Runner {
    drafting(decoder, tokenizer, None)
}

/// A scheduler on a decoder, with a drafter for all requests.
pub fn drafting(
    decoder: Decoder,
    tokenizer: &Arc<Tokenizer>,
    others: Option<Box<dyn Drafter>>,
) -> Runner {
    let own = Arc::<Mutex<Own>>::default();
    let drafter = ById { own: Arc::clone(&own), others };
    let scheduler = Scheduler::new(decoder, Some(Box::new(drafter)), Arc::clone(tokenizer), 8);
    Runner { scheduler, own }
}

/// Runs all requests together to their ends.
pub fn run(runner: &mut Runner, tokenizer: &Tokenizer, asks: Vec<Ask>) -> Vec<Answer> {
    let Runner { scheduler, own } = runner;
    let config = scheduler.decoder().config();
    let (context, vocab) = (config.context_length, config.vocab);
    for (id, mut ask) in asks.into_iter().enumerate() {
        if let Some(drafter) = ask.drafter.take() {
            own.lock().unwrap().insert(id as u64, drafter);
        }
        scheduler.add(sequence(id as u64, ask, context, vocab, tokenizer));
    }
    let answers = finish(scheduler).into_values().collect();
    own.lock().unwrap().clear();
    let pages = scheduler.decoder().pages();
    assert_eq!(pages.free(), pages.total(), "a page leaked");
    assert_eq!(scheduler.metrics().draft_failures, 0);
    answers
}

/// Steps all sequences of a scheduler to their ends; what became of them, by id.
pub fn finish(scheduler: &mut Scheduler) -> BTreeMap<u64, Answer> {
    let mut answers = BTreeMap::<u64, Answer>::new();
    while !scheduler.is_idle() {
        for update in scheduler.step().unwrap() {
            answers.entry(update.id).or_default().add(update);
        }
    }
    answers
}

pub fn sequence(
    id: u64,
    ask: Ask,
    context: usize,
    vocab: usize,
    tokenizer: &Tokenizer,
) -> Sequence {
    let method = match (ask.params.sampling.is_greedy(), ask.params.seed) {
        (true, _) => Method::Greedy,
        (false, Some(_)) => Method::Coupled,
        (false, None) => Method::Standard,
    };
    let spec = Spec {
        id,
        key: Key { seed: ask.params.seed.unwrap_or(7), sample: 0 },
        processors: Processors::new(&ask.params.sampling, vocab).unwrap().into(),
        params: ask.params.into(),
        method,
        budget: ask.budget,
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
