//! Who runs: sequences wait in order of arrival, join at a step border when a place and their pages
//! are free, and leave at a step border.

use crate::cache::{PAGE, pages_for};
use crate::error::EngineError;
use crate::load::tokenizer::Tokenizer;
use crate::metrics::EngineMetrics;
use crate::model::decoder::Decoder;
use crate::request::{Chunk, Completion};
use crate::sequence::{Scratch, Sequence};
use crate::step::{Progress, step};
use specdec_core::Drafter;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a step did for one sequence.
pub struct Update {
    /// Number of the sequence.
    pub id: u64,
    /// What it added; empty while the prompt is being read.
    pub chunk: Chunk,
    /// The end, when this step brought it.
    pub end: Option<Result<Completion, EngineError>>,
}

/// The sequences of one engine and the decoder that they share.
pub struct Scheduler {
    decoder: Decoder,
    drafter: Option<Box<dyn Drafter>>,
    tokenizer: Arc<Tokenizer>,
    max_num_seqs: usize,
    waiting: VecDeque<Sequence>,
    running: Vec<Sequence>,
    scratch: Scratch,
    metrics: EngineMetrics,
}

impl Scheduler {
    /// A scheduler that runs at most `max_num_seqs` sequences together, with drafts of `drafter` for
    /// those that have a budget.
    pub fn new(
        decoder: Decoder,
        drafter: Option<Box<dyn Drafter>>,
        tokenizer: Arc<Tokenizer>,
        max_num_seqs: usize,
    ) -> Self {
        Self {
            decoder,
            drafter,
            tokenizer,
            max_num_seqs,
            waiting: VecDeque::new(),
            running: Vec::new(),
            scratch: Scratch::default(),
            metrics: EngineMetrics::default(),
        }
    }

    /// The decoder, for its limits and accounting.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The sequences that run, in order of arrival.
    pub fn running(&self) -> &[Sequence] {
        &self.running
    }

    /// Sums since the start or the last reset.
    pub fn metrics(&self) -> &EngineMetrics {
        &self.metrics
    }

    /// Starts the sums anew.
    pub fn reset_metrics(&mut self) {
        self.metrics = EngineMetrics::default();
    }

    /// Queues a sequence.
    pub fn add(&mut self, sequence: Sequence) {
        self.waiting.push_back(sequence);
    }

    /// Drops a sequence, wherever it is, and gives its pages back.
    pub fn cancel(&mut self, id: u64) {
        self.waiting.retain(|seq| seq.id != id);
        if let Some(at) = self.running.iter().position(|seq| seq.id == id) {
            let seq = self.running.remove(at);
            self.release(seq);
        }
    }

    /// Gives back all that a sequence holds.
    fn release(&mut self, mut seq: Sequence) {
        self.decoder.release(&mut seq.cache);
        if let Some(drafter) = &mut self.drafter {
            drafter.release(seq.id);
        }
    }

    /// Whether there is anything to do.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// Lets waiting sequences join and steps all running ones once.
    ///
    /// # Errors
    /// A fault of the device; the scheduler must not be used afterwards.
    pub fn step(&mut self) -> Result<Vec<Update>, EngineError> {
        self.admit();
        if self.running.is_empty() {
            return Ok(Vec::new());
        }
        let progress = step(
            &mut self.decoder,
            self.drafter.as_deref_mut(),
            &self.tokenizer,
            &mut self.running,
            &mut self.scratch,
            &mut self.metrics,
        )?;
        let mut updates = Vec::with_capacity(progress.len());
        let mut going = Vec::with_capacity(self.running.len());
        for (mut seq, progress) in std::mem::take(&mut self.running).into_iter().zip(progress) {
            let chunk = seq.take_chunk();
            let end = match progress {
                Progress::Running => None,
                Progress::Finished => seq.completion().map(Ok),
                Progress::Failed(error) => Some(Err(error)),
            };
            let (id, ended) = (seq.id, end.is_some());
            updates.push(Update { id, chunk, end });
            if ended {
                self.release(seq);
            } else {
                going.push(seq);
            }
        }
        self.running = going;
        Ok(updates)
    }

    /// A sequence joins only when the pages of its longest answer and its widest tree are free of
    /// everybody else's claims, so a running sequence never meets a full cache.
    fn admit(&mut self) {
        while self.running.len() < self.max_num_seqs {
            let claimed: usize = self.running.iter().map(claim).sum();
            let free = self.decoder.pages().total() - claimed;
            match self.waiting.front() {
                Some(next) if claim(next) <= free => {}
                _ => return,
            }
            self.running.extend(self.waiting.pop_front());
        }
    }
}

/// Pages that a sequence may need at once: its longest text, and a tree behind it.
pub(crate) fn claim(seq: &Sequence) -> usize {
    let nodes = seq.budget.map_or(0, |budget| budget.nodes);
    pages_for(seq.longest() + nodes)
}

/// Pages for `seqs` sequences of `context` positions with `nodes` tree nodes each.
pub(crate) fn pages_wanted(seqs: usize, context: usize, nodes: usize) -> usize {
    seqs * (context + nodes).div_ceil(PAGE)
}
