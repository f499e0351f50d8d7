//! The engine: a model, its thread, and handles to requests.
//!
//! One thread steps all sequences; callers only encode prompts, send and receive. A handle that is
//! dropped cancels its request: its place is free at once, its sequence goes at the next step border.

mod handle;
mod ready;
mod thread;
mod ticket;

pub use handle::RequestHandle;
pub use ready::{Notifier, ReadyQueue};

use crate::error::EngineError;
use crate::load::{ChatTemplate, Specials, Tokenizer};
use crate::memory::MemoryReport;
use crate::metrics::EngineMetrics;
use crate::model::decoder::Decoder;
use crate::request::SamplingParams;
use crate::scheduler::Scheduler;
use crate::sequence::{Prompt, Sequence, Spec};
use crate::speculate::Speculation;
use crossbeam_channel::{Sender, unbounded};
use specdec_core::rng::{Key, philox};
use specdec_core::{Drafter, Processors, Sampling, TokenId};
use std::collections::HashSet;
use std::mem::take;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use thread::{Command, LastWord, Route, Told, supervise};
use ticket::{Place, Ticket};

/// What a loaded engine is made of.
pub struct Parts {
    /// The model on its device.
    pub decoder: Decoder,
    /// Its tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// Its chat template, if it has one.
    pub template: Option<ChatTemplate>,
    /// Positions of a context, prompt and answer together.
    pub max_model_len: usize,
    /// Most sequences that run together.
    pub max_num_seqs: usize,
    /// Most requests that wait beside as many that run.
    pub max_queued: usize,
    /// Seeds the keys of requests without a seed of their own.
    pub seed: u64,
    /// How to draft; `None` decodes plainly.
    pub speculation: Option<Speculation>,
    /// What drafts; without one, steps are plain.
    pub drafter: Option<Box<dyn Drafter>>,
    /// Bytes by part.
    pub memory: MemoryReport,
}

/// A model ready to answer. All methods take `&self`; share it between threads freely.
pub struct Engine {
    tokenizer: Arc<Tokenizer>,
    template: Option<Arc<ChatTemplate>>,
    speculation: Option<Speculation>,
    memory: MemoryReport,
    vocab: usize,
    max_model_len: usize,
    seed: u64,
    next: AtomicU64,
    open: Arc<AtomicUsize>,
    most_open: usize,
    commands: Sender<Command>,
    thread: Mutex<Option<JoinHandle<()>>>,
    told: Arc<Told>,
    process: u32,
}

impl Engine {
    /// Starts the engine thread for a loaded model.
    ///
    /// # Errors
    /// [`EngineError::Spawn`].
    pub fn start(parts: Parts) -> Result<Self, EngineError> {
        let (commands, inbox) = unbounded();
        let told = Arc::<Told>::default();
        let vocab = parts.decoder.config().vocab;
        let tokenizer = Arc::clone(&parts.tokenizer);
        let scheduler = Scheduler::new(parts.decoder, parts.drafter, tokenizer, parts.max_num_seqs);
        let tells = Arc::clone(&told);
        let thread = std::thread::Builder::new()
            .name("specdec-engine".to_owned())
            .spawn(move || supervise(scheduler, &inbox, &tells))
            .map_err(EngineError::Spawn)?;
        Ok(Self {
            tokenizer: parts.tokenizer,
            template: parts.template.map(Arc::new),
            speculation: parts.speculation,
            memory: parts.memory,
            vocab,
            max_model_len: parts.max_model_len,
            seed: parts.seed,
            next: AtomicU64::new(0),
            open: Arc::default(),
            most_open: parts.max_num_seqs.saturating_add(parts.max_queued),
            commands,
            thread: Mutex::new(Some(thread)),
            told,
            process: std::process::id(),
        })
    }

    /// Queues a prompt (token ids) and returns the handle that receives its events.
    ///
    /// # Errors
    /// As [`Engine::submit_all`].
    pub fn submit(
        &self,
        prompt: Vec<TokenId>,
        params: SamplingParams,
    ) -> Result<RequestHandle, EngineError> {
        let mut handles = self.submit_all(prompt, params, 1, None)?;
        handles.pop().ok_or(EngineError::Closed)
    }

    /// Queues a prompt for `n` answers and returns their handles, in order. Together they take one
    /// place among the open requests, until the last of them has ended or was cancelled. With one
    /// seed, each has its own randomness. The prompt's log-probabilities, which are the same for
    /// all, come with the first. All are announced by `notifier`.
    ///
    /// # Errors
    /// [`EngineError::EmptyPrompt`], [`EngineError::PromptToken`], [`EngineError::ContextLength`],
    /// [`EngineError::Config`] for parameters; [`EngineError::QueueFull`]; [`EngineError::Closed`],
    /// [`EngineError::Dead`], [`EngineError::Forked`].
    pub fn submit_all(
        &self,
        prompt: Vec<TokenId>,
        params: SamplingParams,
        n: u32,
        notifier: Option<&Notifier>,
    ) -> Result<Vec<RequestHandle>, EngineError> {
        self.check_alive()?;
        self.check_prompt(&prompt)?;
        params.validate(self.vocab)?;
        let place = Arc::new(Place::take(&self.open, self.most_open)?);
        let first = self.next.fetch_add(n.into(), Ordering::Relaxed);
        let sequences = self.sequences(first, prompt, params, n)?;
        let open = |sequence: Sequence| {
            let id = sequence.id;
            let (events, receiver) = unbounded();
            let ticket = Arc::new(Ticket::new(Arc::clone(&place), sequence, notifier.cloned()));
            let route = Route { id, events, ticket: LastWord(Arc::clone(&ticket)) };
            self.commands.send(Command::Submit(route)).map_err(|_| self.why_gone())?;
            Ok(RequestHandle {
                id,
                events: receiver,
                ticket,
                commands: self.commands.clone(),
                fault: Arc::clone(&self.told.fault),
                process: self.process,
            })
        };
        sequences.into_iter().map(open).collect()
    }

    /// The sequences of `n` answers to one prompt, numbered from `first`.
    fn sequences(
        &self,
        first: u64,
        prompt: Vec<TokenId>,
        params: SamplingParams,
        n: u32,
    ) -> Result<Vec<Sequence>, EngineError> {
        let budget = self.speculation.as_ref().map(Speculation::budget);
        let method = Speculation::method(self.speculation.as_ref(), &params);
        let (context, arrival) = (self.max_model_len, Instant::now());
        // Rows that only pad the embedding table are no tokens: they never come out.
        let vocab = self.vocab.min(self.tokenizer.vocab_size());
        let processors = Arc::new(Processors::new(&self.sampling(&params), vocab)?);
        let others = Arc::new(SamplingParams { prompt_logprobs: None, ..params.clone() });
        let (prompt, params) = (Prompt::from(prompt), Arc::new(params));
        let sequence = |sample: u32| {
            let id = first + u64::from(sample);
            let params = Arc::clone(if sample == 0 { &params } else { &others });
            let seed = params.seed.unwrap_or_else(|| own_seed(self.seed, id));
            let (key, processors) = (Key { seed, sample }, Arc::clone(&processors));
            let spec = Spec { id, params, processors, key, method, budget, context, arrival };
            Sequence::new(prompt.clone(), spec, &self.tokenizer)
        };
        Ok((0..n).map(sequence).collect())
    }

    /// The parameters of the law with the tokens behind words and ends.
    fn sampling(&self, params: &SamplingParams) -> Sampling {
        let mut sampling = params.sampling.clone();
        let mut known: HashSet<Vec<TokenId>> = sampling.bad_words.iter().cloned().collect();
        for text in params.bad_words.iter().flat_map(|word| spellings(word)) {
            let tokens = self.tokenizer.encode(&text, Specials::AsText, false);
            if known.insert(tokens.clone()) {
                sampling.bad_words.push(tokens);
            }
        }
        sampling.end_token_ids.extend(&params.stop_token_ids);
        if !params.ignore_eos {
            sampling.end_token_ids.extend(self.tokenizer.end_ids());
        }
        sampling
    }

    fn check_prompt(&self, prompt: &[TokenId]) -> Result<(), EngineError> {
        if prompt.is_empty() {
            return Err(EngineError::EmptyPrompt);
        }
        if let Some(index) = prompt.iter().position(|&token| token as usize >= self.vocab) {
            let token = prompt[index];
            return Err(EngineError::PromptToken { index, token, vocab: self.vocab });
        }
        let (context, limit) = (self.max_model_len, self.max_model_len - 1);
        if prompt.len() > limit {
            return Err(EngineError::ContextLength { tokens: prompt.len(), limit, context });
        }
        Ok(())
    }

    /// Whether the engine can still be asked.
    ///
    /// # Errors
    /// [`EngineError::Closed`], [`EngineError::Dead`], [`EngineError::Forked`].
    pub fn check_alive(&self) -> Result<(), EngineError> {
        check_process(self.process)?;
        let open = lock(&self.thread).is_some();
        let dead = lock(&self.told.fault).is_some();
        if open && !dead { Ok(()) } else { Err(self.why_gone()) }
    }

    fn why_gone(&self) -> EngineError {
        why_gone(&self.told.fault)
    }

    /// A chat template for this model instead of its own.
    ///
    /// # Errors
    /// [`EngineError::Template`] if it does not compile.
    pub fn compile_template(&self, source: &str) -> Result<ChatTemplate, EngineError> {
        Ok(ChatTemplate::new(source, Arc::clone(&self.tokenizer))?)
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// Longest prompt in bytes: a context full of the longest token. Known before anything is
    /// tokenised, so that a text beyond all measure costs nothing.
    pub fn max_prompt_bytes(&self) -> usize {
        self.max_model_len.saturating_mul(self.tokenizer.longest_token())
    }

    /// Checks the length of a text that is to become a prompt.
    ///
    /// # Errors
    /// [`EngineError::PromptBytes`].
    pub fn check_prompt_bytes(&self, bytes: usize) -> Result<(), EngineError> {
        let (limit, context) = (self.max_prompt_bytes(), self.max_model_len);
        if bytes <= limit {
            Ok(())
        } else {
            Err(EngineError::PromptBytes { bytes, limit, context })
        }
    }

    /// The model's chat template.
    ///
    /// # Errors
    /// [`EngineError::NoChatTemplate`].
    pub fn template(&self) -> Result<&Arc<ChatTemplate>, EngineError> {
        self.template.as_ref().ok_or(EngineError::NoChatTemplate)
    }

    /// Positions of a context, prompt and answer together.
    pub fn max_model_len(&self) -> usize {
        self.max_model_len
    }

    /// Vocabulary size of the model.
    pub fn vocab(&self) -> usize {
        self.vocab
    }

    /// Bytes by part.
    pub fn memory(&self) -> &MemoryReport {
        &self.memory
    }

    /// Sums over all steps up to the last border; `reset` starts them anew. Does not wait for the
    /// step in flight.
    ///
    /// # Errors
    /// [`EngineError::Closed`], [`EngineError::Dead`], [`EngineError::Forked`].
    pub fn metrics(&self, reset: bool) -> Result<EngineMetrics, EngineError> {
        self.check_alive()?;
        let mut sums = lock(&self.told.metrics);
        Ok(if reset { take(&mut *sums) } else { sums.clone() })
    }

    /// Ends the engine thread after the step in flight; open requests fail with
    /// [`EngineError::Closed`]. A second call does nothing.
    pub fn close(&self) {
        if check_process(self.process).is_err() {
            return;
        }
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // The thread ends by itself when the inbox is gone, so a failed send is no loss.
            let _ = self.commands.send(Command::Close);
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

/// A word within another and at the beginning of one; blanks alone are themselves.
fn spellings(word: &str) -> Vec<String> {
    match word.trim_start() {
        "" => vec![word.to_owned()],
        letters => vec![letters.to_owned(), format!(" {letters}")],
    }
}

/// Seed of a request that brings none: a function of the engine's seed and the request's number,
/// spread over all 64 bits so that it meets a seed that a user chose only by chance.
fn own_seed(engine: u64, id: u64) -> u64 {
    let key = Key { seed: engine, sample: 0 };
    let [low, high, ..] = philox([id as u32, (id >> 32) as u32, 0, 0], key.words());
    u64::from(high) << 32 | u64::from(low)
}

/// Threads do not survive a fork: a child must hear it at once and never wait.
fn check_process(parent: u32) -> Result<(), EngineError> {
    if std::process::id() == parent { Ok(()) } else { Err(EngineError::Forked { parent }) }
}

fn why_gone(fault: &Mutex<Option<String>>) -> EngineError {
    match lock(fault).clone() {
        Some(message) => EngineError::Dead { message },
        None => EngineError::Closed,
    }
}

/// A panic while holding one of these locks leaves the plain values in them usable.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
