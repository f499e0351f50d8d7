//! A device that takes the time of another's operations.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use specdec_engine::EngineError;
use specdec_engine::cache::Move;
use specdec_engine::load::ModelConfig;
use specdec_engine::model::rows::Step;
use specdec_engine::ops::{Memory, Ops, cpu::CpuOps};

use crate::twins::Twins;

/// What the time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Products with weights.
    Linear,
    /// Scores, softmax, weighted values.
    Attention,
    /// Embedding rows and rope angles.
    Embed,
    /// Norms, with the quantisation of what they give.
    Norm,
    /// Rope and the append to the cache.
    Rope,
    /// The gated activation, with its quantisation.
    Activation,
    /// Quantisation of what attention gives.
    Quantise,
    /// Law of the next token, on every row.
    Law,
    /// What is left of the step: layout of rows, pages, calls.
    Rest,
}

impl Phase {
    pub(crate) const ALL: [Phase; 9] = [
        Phase::Linear,
        Phase::Attention,
        Phase::Embed,
        Phase::Norm,
        Phase::Rope,
        Phase::Activation,
        Phase::Quantise,
        Phase::Law,
        Phase::Rest,
    ];
}

/// Times of one step.
#[derive(Clone, Default)]
pub(crate) struct Times {
    phases: [Duration; Phase::ALL.len()],
    /// Time of the measurement itself.
    twins: Duration,
    regions: Vec<Duration>,
    total: Duration,
}

impl Times {
    fn add(&mut self, phase: Phase, time: Duration) {
        self.phases[phase as usize] += time;
    }

    /// A step ended that took `total`, `law` of it for the law.
    pub(crate) fn close(&mut self, total: Duration, law: Duration) {
        self.total = total.saturating_sub(self.twins);
        self.add(Phase::Law, law);
        let known: Duration = self.phases.iter().sum();
        self.add(Phase::Rest, self.total.saturating_sub(known));
        self.regions.sort_unstable();
    }

    pub(crate) fn ms(&self, phase: Phase) -> f64 {
        self.phases[phase as usize].as_secs_f64() * 1e3
    }

    pub(crate) fn total(&self) -> f64 {
        self.total.as_secs_f64() * 1e3
    }

    /// All but products, attention and the law of the next token.
    pub(crate) fn overhead(&self) -> f64 {
        let work = [Phase::Linear, Phase::Attention, Phase::Law];
        self.total() - work.iter().map(|phase| self.ms(*phase)).sum::<f64>()
    }

    pub(crate) fn regions(&self) -> usize {
        self.regions.len()
    }

    /// Median of the empty regions.
    pub(crate) fn region_us(&self) -> f64 {
        let middle = self.regions.get(self.regions.len() / 2);
        middle.map_or(0.0, |region| region.as_secs_f64() * 1e6)
    }
}

pub(crate) struct Timed {
    ops: CpuOps,
    twins: Twins,
    times: Arc<Mutex<Times>>,
}

impl Timed {
    pub(crate) fn new(ops: CpuOps, twins: Twins, times: Arc<Mutex<Times>>) -> Self {
        Self { ops, twins, times }
    }

    /// Runs an operation, then the twin of its small part, which is counted as `small`.
    fn split(
        &mut self,
        phase: Phase,
        small: Phase,
        work: impl FnOnce(&mut CpuOps) -> Result<(), EngineError>,
        twin: impl FnOnce(&mut Twins, &CpuOps),
    ) -> Result<(), EngineError> {
        let begin = Instant::now();
        work(&mut self.ops)?;
        let whole = begin.elapsed();
        twin(&mut self.twins, &self.ops);
        let part = begin.elapsed().saturating_sub(whole).min(whole);
        let mut times = self.times.lock().expect("no panic");
        times.add(phase, whole.saturating_sub(part));
        times.add(small, part);
        times.twins += begin.elapsed().saturating_sub(whole);
        Ok(())
    }

    fn whole(
        &mut self,
        phase: Phase,
        work: impl FnOnce(&mut CpuOps) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let begin = Instant::now();
        work(&mut self.ops)?;
        self.times.lock().expect("no panic").add(phase, begin.elapsed());
        Ok(())
    }

    fn empty_region(&self) {
        let begin = Instant::now();
        let pool = &self.ops.cpu().pool;
        pool.run(pool.threads(), &|_| ()).expect("threads");
        let time = begin.elapsed();
        let mut times = self.times.lock().expect("no panic");
        times.regions.push(time);
        times.twins += begin.elapsed();
    }
}

impl Ops for Timed {
    fn embed(&mut self, step: &Step<'_>) -> Result<(), EngineError> {
        self.whole(Phase::Embed, |ops| ops.embed(step))
    }

    fn qkv(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let rows = step.batch.len();
        let twin = |twins: &mut Twins, ops: &CpuOps| twins.norm(ops.cpu(), rows);
        self.split(Phase::Linear, Phase::Norm, |ops| ops.qkv(layer, step), twin)
    }

    fn rope_append(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.whole(Phase::Rope, |ops| ops.rope_append(layer, step))
    }

    fn attend(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let rows = step.batch.len();
        let twin = |twins: &mut Twins, ops: &CpuOps| twins.quantise(ops.cpu(), rows);
        self.split(Phase::Attention, Phase::Quantise, |ops| ops.attend(layer, step), twin)
    }

    fn attention_out(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.whole(Phase::Linear, |ops| ops.attention_out(layer, step))
    }

    fn gate_up(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let rows = step.batch.len();
        let twin = |twins: &mut Twins, ops: &CpuOps| twins.activation(ops.cpu(), rows);
        self.split(Phase::Linear, Phase::Activation, |ops| ops.gate_up(layer, step), twin)?;
        let between = Instant::now();
        self.twins.norm(self.ops.cpu(), rows);
        let norm = between.elapsed();
        let mut times = self.times.lock().expect("no panic");
        times.twins += norm;
        // The twin alone may be interrupted for longer than products have taken.
        let norm = norm.min(times.phases[Phase::Linear as usize]);
        times.add(Phase::Norm, norm);
        times.phases[Phase::Linear as usize] -= norm;
        Ok(())
    }

    fn down(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.whole(Phase::Linear, |ops| ops.down(layer, step))?;
        self.empty_region();
        Ok(())
    }

    fn head(&mut self, step: &Step<'_>) -> Result<(), EngineError> {
        let rows = step.batch.logits_rows().len();
        let twin = |twins: &mut Twins, ops: &CpuOps| twins.norm(ops.cpu(), rows);
        self.split(Phase::Linear, Phase::Norm, |ops| ops.head(step), twin)
    }

    fn config(&self) -> &ModelConfig {
        self.ops.config()
    }

    fn max_rows(&self) -> usize {
        self.ops.max_rows()
    }

    fn max_logits(&self) -> usize {
        self.ops.max_logits()
    }

    fn pages(&self) -> usize {
        self.ops.pages()
    }

    fn keep_hidden(&mut self, index: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.ops.keep_hidden(index, step)
    }

    fn logits(&self) -> &[f32] {
        self.ops.logits()
    }

    fn hidden(&self, index: usize) -> &[f32] {
        self.ops.hidden(index)
    }

    fn move_slots(&mut self, moves: &[Move]) -> Result<(), EngineError> {
        self.ops.move_slots(moves)
    }

    fn slot_bytes(&self, slot: u32) -> Result<Vec<u8>, EngineError> {
        self.ops.slot_bytes(slot)
    }

    fn memory(&self) -> Memory {
        self.ops.memory()
    }
}
