//! The seam between the decoder and a device: the operations of one transformer layer.
//!
//! A device owns the weights, the keys and values, and the activations of the pass in flight; the
//! decoder ([`crate::model::decoder`]) only says what comes next. So a device can keep everything
//! where it computes and allocate nothing in a step. Registers, by name: `x` the residual stream,
//! `q`, `k`, `v`, `attended`, `activated`, and the results `logits` and `hidden`.
//!
//! Law of every CPU device: a row's results are the same bits whatever other rows are in the pass.

use crate::cache::Move;
use crate::error::EngineError;
use crate::load::ModelConfig;
use crate::model::rows::Step;

#[cfg(feature = "candle")]
pub mod candle;
pub mod cpu;

/// One device running one model. Every operation fails only as its device does: with
/// [`EngineError::Pool`] on the CPU.
#[expect(clippy::missing_errors_doc, reason = "one sentence above holds for all of them")]
pub trait Ops: Send {
    /// The model's shape.
    fn config(&self) -> &ModelConfig;

    /// Most rows that one pass may have.
    fn max_rows(&self) -> usize;

    /// Most rows of one pass that may ask for logits.
    fn max_logits(&self) -> usize;

    /// Cache pages that the device holds memory for.
    fn pages(&self) -> usize;

    /// `x = embedding(token)` for every row, and whatever depends on positions only.
    fn embed(&mut self, step: &Step<'_>) -> Result<(), EngineError>;

    /// `q, k, v = W (norm(x)) + b` of `layer`.
    fn qkv(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError>;

    /// Rotates `q` and `k` to the rows' positions and stores `k`, `v` in the rows' cache slots.
    fn rope_append(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError>;

    /// `attended = softmax(q K / sqrt(d)) V` over the keys of each row's span.
    fn attend(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError>;

    /// `x += W_o attended`.
    fn attention_out(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError>;

    /// `activated = silu(W_gate h) * (W_up h)` with `h = norm(x)`.
    fn gate_up(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError>;

    /// `x += W_down activated`.
    fn down(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError>;

    /// Copies `x` of the rows that asked for hidden states into capture `index`.
    fn keep_hidden(&mut self, index: usize, step: &Step<'_>) -> Result<(), EngineError>;

    /// `logits = W_head norm(x)` for the rows that asked.
    fn head(&mut self, step: &Step<'_>) -> Result<(), EngineError>;

    /// Logits of the last pass: one row of `vocab` per asking row, in row order.
    fn logits(&self) -> &[f32];

    /// Hidden states of capture `index` of the last pass: one row of `hidden` per asking row.
    fn hidden(&self, index: usize) -> &[f32];

    /// Moves keys and values between cache slots, all layers, in the order given.
    fn move_slots(&mut self, moves: &[Move]) -> Result<(), EngineError>;

    /// The stored bits of one slot, all layers, keys then values: for tests of cache state.
    fn slot_bytes(&self, slot: u32) -> Result<Vec<u8>, EngineError>;

    /// Bytes held by weights and by the cache.
    fn memory(&self) -> Memory;
}

/// Bytes that a device holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Packed weights and tables.
    pub weights: usize,
    /// Those of them that every pass reads: all but an embedding table that is not the head too.
    pub weights_read: usize,
    /// Keys and values, all pages.
    pub kv: usize,
    /// Activations and results of one pass.
    pub activations: usize,
}
