//! Who runs: sequences wait in order of arrival, join at a step border when there is a place and room
//! in the cache for what they need now, and leave at a step border.
//!
//! A text grows, so the cache can become too small for all who run. Then the youngest gives its pages
//! back and waits again, first in line, with all that it has said; later that is read anew, and the
//! answer goes on where it stood. The oldest never gives way, so there is always progress; its
//! longest text fits, or it would not have been let in.

use crate::cache::pages_for;
use crate::error::EngineError;
use crate::load::tokenizer::Tokenizer;
use crate::metrics::EngineMetrics;
use crate::model::decoder::Decoder;
use crate::request::{Chunk, Completion};
use crate::sequence::{Scratch, Sequence};
use crate::step::{Progress, step};
use specdec_core::Drafter;
use std::collections::VecDeque;
use std::mem::take;
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

    /// Sums since the start, or since they were last taken.
    pub fn metrics(&self) -> &EngineMetrics {
        &self.metrics
    }

    /// Takes the sums and starts them anew.
    pub fn take_metrics(&mut self) -> EngineMetrics {
        take(&mut self.metrics)
    }

    /// Queues a sequence.
    pub fn add(&mut self, sequence: Sequence) {
        self.waiting.push_back(sequence);
    }

    /// Drops the sequences whose numbers are `gone`, wherever they are, and gives their pages back.
    pub fn cancel(&mut self, gone: impl Fn(u64) -> bool) {
        self.waiting.retain(|seq| !gone(seq.id));
        let running = take(&mut self.running).into_iter();
        let (dropped, kept): (Vec<_>, Vec<_>) = running.partition(|seq| gone(seq.id));
        self.running = kept;
        for mut seq in dropped {
            self.release(&mut seq);
        }
    }

    /// Gives back all that a sequence holds.
    fn release(&mut self, seq: &mut Sequence) {
        self.decoder.release(&mut seq.cache);
        if let Some(drafter) = &mut self.drafter {
            drafter.release(seq.id);
        }
    }

    /// Whether there is anything to do.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// Lets sequences join and give way, and steps all running ones once.
    ///
    /// # Errors
    /// A fault of the device; the scheduler must not be used afterwards.
    pub fn step(&mut self) -> Result<Vec<Update>, EngineError> {
        self.make_room();
        let mut updates = self.admit();
        if self.running.is_empty() {
            return Ok(updates);
        }
        for seq in &mut self.running {
            let found = read_ahead(&mut self.decoder, seq);
            self.metrics.count_cached(seq, found);
        }
        let progress = step(
            &mut self.decoder,
            self.drafter.as_deref_mut(),
            &self.tokenizer,
            &mut self.running,
            &mut self.scratch,
            &mut self.metrics,
        )?;
        let mut going = Vec::with_capacity(self.running.len());
        for (mut seq, progress) in take(&mut self.running).into_iter().zip(progress) {
            let chunk = seq.take_chunk();
            let end = match progress {
                Progress::Running => None,
                Progress::Finished => seq.completion().map(Ok),
                Progress::Failed(error) => Some(Err(error)),
            };
            let (id, ended) = (seq.id, end.is_some());
            updates.push(Update { id, chunk, end });
            if ended {
                self.release(&mut seq);
            } else {
                going.push(seq);
            }
        }
        self.running = going;
        Ok(updates)
    }

    /// Sets the youngest aside until the others have room.
    fn make_room(&mut self) {
        while self.running.len() > 1 && self.wanted() > self.decoder.pages().free() {
            if let Some(mut seq) = self.running.pop() {
                seq.num_preemptions += 1;
                self.metrics.preemptions += 1;
                self.release(&mut seq);
                self.waiting.push_front(seq);
            }
        }
    }

    /// Pages that the running sequences lack for what they know and their trees.
    fn wanted(&self) -> usize {
        self.running.iter().map(lacks).sum()
    }

    /// Lets waiting sequences join while there is room for what they know and their trees. The end of
    /// those whose longest answer no cache could hold.
    fn admit(&mut self) -> Vec<Update> {
        let mut refused = Vec::new();
        while self.running.len() < self.max_num_seqs
            && let Some(mut seq) = self.waiting.pop_front()
        {
            let (needed, total) = (needs(&seq, seq.longest()), self.decoder.pages().total());
            if needed > total {
                let end = Some(Err(EngineError::CacheFull { needed, free: total }));
                refused.push(Update { id: seq.id, chunk: Chunk::default(), end });
                continue;
            }
            seq.begin();
            let found = read_ahead(&mut self.decoder, &mut seq);
            if self.wanted() + lacks(&seq) > self.decoder.pages().free() {
                self.decoder.release(&mut seq.cache);
                self.waiting.push_front(seq);
                break;
            }
            self.metrics.count_prompt(&seq);
            self.metrics.count_cached(&mut seq, found);
            self.running.push(seq);
        }
        refused
    }
}

/// Skips what a sequence would read although the cache knows it by now: the text of an earlier
/// request, or of one that reads the same just before it. Returns how many tokens.
fn read_ahead(decoder: &mut Decoder, seq: &mut Sequence) -> usize {
    let reads = seq.missing().len() > 1 && !seq.reads_aloud();
    if reads { decoder.reuse(&mut seq.cache, &seq.tokens) } else { 0 }
}

/// Pages that a sequence lacks for what it knows and its tree.
fn lacks(seq: &Sequence) -> usize {
    needs(seq, seq.tokens.len()) - seq.cache.pages().len()
}

/// Pages for `positions` positions of a sequence and its widest tree.
fn needs(seq: &Sequence, positions: usize) -> usize {
    pages_for(positions + seq.budget.map_or(0, |budget| budget.nodes))
}
