//! The engine: a model, its thread, and handles to requests.
//!
//! One thread steps all sequences; callers only encode prompts, send and receive. A handle that is
//! dropped cancels its request at the next step border.

use crate::error::EngineError;
use crate::load::{ChatTemplate, Specials, Tokenizer};
use crate::memory::MemoryReport;
use crate::metrics::EngineMetrics;
use crate::model::decoder::Decoder;
use crate::request::{Chunk, Event, SamplingParams};
use crate::scheduler::{Scheduler, Update};
use crate::sequence::{Sequence, Spec};
use crate::speculate::Speculation;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, unbounded};
use specdec_core::rng::{Key, philox};
use specdec_core::{Drafter, Processors, Sampling, TokenId};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the engine thread is told.
enum Command {
    Submit { sequence: Box<Sequence>, route: Route },
    Metrics { reply: Sender<EngineMetrics>, reset: bool },
    Close,
}

/// Where a sequence's events go, and whether anybody still wants them.
struct Route {
    events: Sender<Event>,
    cancelled: Arc<AtomicBool>,
    _place: Place,
}

/// A place among the open requests, held until it is dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    /// A place, unless `limit` are taken.
    fn take(open: &Arc<AtomicUsize>, limit: usize) -> Result<Self, EngineError> {
        let more = |open: usize| (open < limit).then_some(open + 1);
        match open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Self(Arc::clone(open))),
            Err(open) => Err(EngineError::QueueFull { open, limit }),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

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
    /// Most sequences that wait beside them.
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
    fault: Arc<Mutex<Option<String>>>,
    process: u32,
}

/// A request under way. Dropping it cancels the request.
pub struct RequestHandle {
    id: u64,
    events: Receiver<Event>,
    cancelled: Arc<AtomicBool>,
    fault: Arc<Mutex<Option<String>>>,
    process: u32,
}

impl Engine {
    /// Starts the engine thread for a loaded model.
    ///
    /// # Errors
    /// [`EngineError::Spawn`].
    pub fn start(parts: Parts) -> Result<Self, EngineError> {
        let (commands, inbox) = unbounded();
        let fault = Arc::new(Mutex::new(None));
        let vocab = parts.decoder.config().vocab;
        let tokenizer = Arc::clone(&parts.tokenizer);
        let scheduler = Scheduler::new(parts.decoder, parts.drafter, tokenizer, parts.max_num_seqs);
        let seen = Arc::clone(&fault);
        let thread = std::thread::Builder::new()
            .name("specdec-engine".to_owned())
            .spawn(move || supervise(scheduler, &inbox, &seen))
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
            fault,
            process: std::process::id(),
        })
    }

    /// Queues a prompt (token ids) and returns the handle that receives its events.
    ///
    /// # Errors
    /// [`EngineError::EmptyPrompt`], [`EngineError::PromptToken`], [`EngineError::ContextLength`],
    /// [`EngineError::Config`] for parameters; [`EngineError::QueueFull`]; [`EngineError::Closed`], [`EngineError::Dead`],
    /// [`EngineError::Forked`].
    pub fn submit(
        &self,
        prompt: Vec<TokenId>,
        params: SamplingParams,
    ) -> Result<RequestHandle, EngineError> {
        self.check_alive()?;
        self.check_prompt(&prompt)?;
        params.validate(self.vocab)?;
        let place = Place::take(&self.open, self.most_open)?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (events, receiver) = unbounded();
        let cancelled = Arc::new(AtomicBool::new(false));
        let sequence = Box::new(self.sequence(id, prompt, params)?);
        let route = Route { events, cancelled: Arc::clone(&cancelled), _place: place };
        let command = Command::Submit { sequence, route };
        self.commands.send(command).map_err(|_| self.why_gone())?;
        let fault = Arc::clone(&self.fault);
        Ok(RequestHandle { id, events: receiver, cancelled, fault, process: self.process })
    }

    fn sequence(
        &self,
        id: u64,
        prompt: Vec<TokenId>,
        params: SamplingParams,
    ) -> Result<Sequence, EngineError> {
        let seed = params.seed.unwrap_or_else(|| own_seed(self.seed, id));
        let key = Key { seed, sample: params.sample };
        let budget = self.speculation.as_ref().map(Speculation::budget);
        let method = Speculation::method(self.speculation.as_ref(), &params);
        let (context, arrival) = (self.max_model_len, Instant::now());
        // Rows that only pad the embedding table are no tokens: they never come out.
        let vocab = self.vocab.min(self.tokenizer.vocab_size());
        let processors = Processors::new(&self.sampling(&params), vocab)?;
        let spec = Spec { id, params, processors, key, method, budget, context, arrival };
        Ok(Sequence::new(prompt, spec, &self.tokenizer))
    }

    /// The parameters of the law with the tokens behind words and ends.
    fn sampling(&self, params: &SamplingParams) -> Sampling {
        let mut sampling = params.sampling.clone();
        for text in params.bad_words.iter().flat_map(|word| spellings(word)) {
            let tokens = self.tokenizer.encode(&text, Specials::AsText, false);
            if !sampling.bad_words.contains(&tokens) {
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
        let dead = lock(&self.fault).is_some();
        if open && !dead { Ok(()) } else { Err(self.why_gone()) }
    }

    fn why_gone(&self) -> EngineError {
        why_gone(&self.fault)
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

    /// Sums over all steps; `reset` starts them anew.
    ///
    /// # Errors
    /// [`EngineError::Closed`], [`EngineError::Dead`], [`EngineError::Forked`].
    pub fn metrics(&self, reset: bool) -> Result<EngineMetrics, EngineError> {
        self.check_alive()?;
        let (reply, answer) = unbounded();
        self.commands.send(Command::Metrics { reply, reset }).map_err(|_| self.why_gone())?;
        answer.recv().map_err(|_| self.why_gone())
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

impl RequestHandle {
    /// Number of the request, unique in its engine.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The next event, or `None` when none came within `timeout`. After [`Event::Done`] or
    /// [`Event::Failed`] nothing follows and the answer is [`EngineError::Closed`].
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] after [`RequestHandle::cancel`]; [`EngineError::Closed`],
    /// [`EngineError::Dead`], [`EngineError::Forked`].
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Option<Event>, EngineError> {
        check_process(self.process)?;
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(EngineError::Cancelled);
        }
        match self.events.recv_timeout(timeout) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) if self.cancelled.load(Ordering::Relaxed) => {
                Err(EngineError::Cancelled)
            }
            Err(RecvTimeoutError::Disconnected) => Err(why_gone(&self.fault)),
        }
    }

    /// Asks the engine to drop the request at the next step border.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Drop for RequestHandle {
    fn drop(&mut self) {
        self.cancel();
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

/// Runs the loop and turns its end, whatever it was, into an answer for everybody who waits. The
/// fault is written down before the routes are dropped, so a handle that sees its route end knows
/// why.
fn supervise(scheduler: Scheduler, inbox: &Receiver<Command>, fault: &Mutex<Option<String>>) {
    let mut routes = HashMap::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| serve(scheduler, inbox, &mut routes)));
    let message = match outcome.map_err(|panic| EngineError::from_panic(panic.as_ref())) {
        Ok(Ok(())) => return,
        Err(EngineError::Dead { message }) => message,
        Ok(Err(error)) | Err(error) => error.to_string(),
    };
    *lock(fault) = Some(message);
}

fn serve(
    mut scheduler: Scheduler,
    inbox: &Receiver<Command>,
    routes: &mut HashMap<u64, Route>,
) -> Result<(), EngineError> {
    loop {
        if !take_commands(&mut scheduler, inbox, routes) {
            return Ok(());
        }
        let gone: Vec<u64> = routes
            .iter()
            .filter(|(_, route)| route.cancelled.load(Ordering::Relaxed))
            .map(|(&id, _)| id)
            .collect();
        for id in gone {
            scheduler.cancel(id);
            routes.remove(&id);
        }
        for update in scheduler.step()? {
            deliver(update, routes);
        }
    }
}

/// Takes what the inbox holds, waiting only when there is nothing else to do. Returns whether to go
/// on.
fn take_commands(
    scheduler: &mut Scheduler,
    inbox: &Receiver<Command>,
    routes: &mut HashMap<u64, Route>,
) -> bool {
    loop {
        let command = if scheduler.is_idle() {
            inbox.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            inbox.try_recv()
        };
        match command {
            Ok(Command::Submit { sequence, route }) => {
                routes.insert(sequence.id, route);
                scheduler.add(*sequence);
            }
            Ok(Command::Metrics { reply, reset }) => {
                // A caller who stopped waiting is no fault.
                let _ = reply.send(scheduler.metrics().clone());
                if reset {
                    scheduler.reset_metrics();
                }
            }
            Ok(Command::Close) | Err(TryRecvError::Disconnected) => return false,
            Err(TryRecvError::Empty) => return true,
        }
    }
}

fn deliver(update: Update, routes: &mut HashMap<u64, Route>) {
    let Some(route) = routes.get(&update.id) else { return };
    let event = match update.end {
        Some(Ok(completion)) => Event::Done(update.chunk, Box::new(completion)),
        Some(Err(error)) => Event::Failed(error),
        None if update.chunk == Chunk::default() => return,
        None => Event::Chunk(update.chunk),
    };
    let last = !matches!(event, Event::Chunk(_));
    // A handle that is gone has set its cancel flag; the next border removes the sequence.
    let _ = route.events.send(event);
    if last {
        routes.remove(&update.id);
    }
}
