//! The one decoder: the order of operations of a transformer, written once against [`Ops`].
//!
//! Plain decoding, prefill in chunks and the check of a draft tree are the same call with other rows.

use super::rows::{Batch, Row};
use crate::cache::{PagePool, SeqCache};
use crate::error::EngineError;
use crate::load::ModelConfig;
use crate::ops::{Memory, Ops};
use specdec_core::TokenId;

/// A model on a device together with its KV pages.
pub struct Decoder {
    ops: Box<dyn Ops>,
    pages: PagePool,
    batch: Batch,
    captures: Vec<usize>,
}

impl Decoder {
    /// A decoder on `ops`. `captures` names the layers whose *input* (the residual stream before the
    /// layer; the layer count itself names the output of the last one) is kept for the rows that
    /// ask: the convention of `hidden_states` in Hugging Face transformers.
    ///
    /// # Errors
    /// [`EngineError::Config`] when a capture lies beyond the model.
    pub fn new(ops: Box<dyn Ops>, captures: Vec<usize>) -> Result<Self, EngineError> {
        let layers = ops.config().layers;
        if let Some(&found) = captures.iter().find(|&&layer| layer > layers) {
            return Err(EngineError::Config {
                field: "captures",
                found: found.to_string(),
                expected: format!("a layer in 0..={layers}"),
            });
        }
        let pages = PagePool::new(ops.pages(), true);
        Ok(Self { ops, pages, batch: Batch::default(), captures })
    }

    /// The same with at most so many `pages` of its cache and, unless it `keeps` them, without memory
    /// of texts ([`Self::reuse`] finds nothing then).
    #[must_use]
    pub fn limited(self, pages: usize, keeps: bool) -> Self {
        let pages = PagePool::new(pages.min(self.ops.pages()), keeps);
        Self { pages, ..self }
    }

    /// The model's shape.
    pub fn config(&self) -> &ModelConfig {
        self.ops.config()
    }

    /// The page accounting.
    pub fn pages(&self) -> &PagePool {
        &self.pages
    }

    /// Bytes held by the device.
    pub fn memory(&self) -> Memory {
        self.ops.memory()
    }

    /// Most rows that one pass may have, and most of them that may ask for logits.
    pub fn limits(&self) -> (usize, usize) {
        (self.ops.max_rows(), self.ops.max_logits())
    }

    /// Runs `rows` through the model; row `i` belongs to `caches[rows[i].seq]`. Their keys and values
    /// stand in the tails until [`Self::commit`] keeps a part of them.
    ///
    /// # Errors
    /// [`EngineError::CacheFull`] when pages are missing, [`EngineError::Rows`] for rows that the
    /// device cannot take, and the device's own errors. The committed parts are never touched.
    pub fn forward(
        &mut self,
        caches: &mut [&mut SeqCache],
        rows: &[Row],
    ) -> Result<(), EngineError> {
        self.batch.clear();
        self.forward_on(caches, rows)
    }

    /// As [`Self::forward`], going on from the passes since the last call of it: the same caches, no
    /// commit in between; a row may hang behind any row of those passes. So a tree grows level by
    /// level, and no row of it runs twice.
    ///
    /// # Errors
    /// As [`Self::forward`].
    pub fn forward_on(
        &mut self,
        caches: &mut [&mut SeqCache],
        rows: &[Row],
    ) -> Result<(), EngineError> {
        self.check(rows)?;
        for (seq, cache) in caches.iter_mut().enumerate() {
            let more = rows.iter().filter(|row| row.seq == seq).count();
            self.pages.reserve(cache, self.batch.tail(seq) + more)?;
        }
        self.batch.lay_out(rows, caches)?;
        if rows.is_empty() {
            return Ok(());
        }
        self.layers()
    }

    fn layers(&mut self) -> Result<(), EngineError> {
        let window = self.ops.config().window.map(|window| window.size);
        let step = self.batch.step(window);
        let ops = self.ops.as_mut();
        let layers = ops.config().layers;
        ops.embed(&step)?;
        for layer in 0..layers {
            keep(ops, &self.captures, layer, &step)?;
            ops.qkv(layer, &step)?;
            ops.rope_append(layer, &step)?;
            ops.attend(layer, &step)?;
            ops.attention_out(layer, &step)?;
            ops.gate_up(layer, &step)?;
            ops.down(layer, &step)?;
        }
        keep(ops, &self.captures, layers, &step)?;
        ops.head(&step)
    }

    fn check(&self, rows: &[Row]) -> Result<(), EngineError> {
        let vocab = self.config().vocab;
        if let Some(row) = rows.iter().position(|row| row.token as usize >= vocab) {
            return Err(EngineError::Rows { row, reason: "has a token outside the vocabulary" });
        }
        if rows.len() > self.ops.max_rows() {
            let row = self.ops.max_rows();
            return Err(EngineError::Rows { row, reason: "is one more than the device takes" });
        }
        let wanted = rows.iter().enumerate().filter(|(_, row)| row.logits);
        match wanted.map(|(index, _)| index).nth(self.ops.max_logits()) {
            Some(row) => {
                Err(EngineError::Rows { row, reason: "asks for more logits than the device keeps" })
            }
            None => Ok(()),
        }
    }

    /// Makes room in `cache` for `rows` rows behind its committed part.
    ///
    /// # Errors
    /// [`EngineError::CacheFull`]; `cache` is then unchanged.
    pub fn reserve(&mut self, cache: &mut SeqCache, rows: usize) -> Result<(), EngineError> {
        self.pages.reserve(cache, rows)
    }

    /// Logits (`vocab` values) of a row of the last pass that asked for them.
    pub fn logits(&self, row: usize) -> Option<&[f32]> {
        let vocab = self.config().vocab;
        let at = self.batch.logits_rows().binary_search(&(row as u32)).ok()?;
        self.ops.logits().get(at * vocab..(at + 1) * vocab)
    }

    /// Hidden state (`hidden` values) before `layer` of a row of the last pass that asked for it.
    pub fn hidden(&self, layer: usize, row: usize) -> Option<&[f32]> {
        let width = self.config().hidden;
        let index = self.captures.iter().position(|&capture| capture == layer)?;
        let at = self.batch.hidden_rows().binary_search(&(row as u32)).ok()?;
        self.ops.hidden(index).get(at * width..(at + 1) * width)
    }

    /// Keeps the tail rows `path` of `cache` (ascending indices among its own rows since the last
    /// [`Self::forward`], root to leaf) and drops the others with their pages.
    ///
    /// # Errors
    /// The device's own.
    pub fn commit(&mut self, cache: &mut SeqCache, path: &[usize]) -> Result<(), EngineError> {
        let moves = cache.commit(path);
        self.ops.move_slots(&moves)?;
        self.pages.trim(cache);
        Ok(())
    }

    /// Makes the full pages of `cache`, which holds the beginning of `text`, known by that text.
    pub fn publish(&mut self, cache: &mut SeqCache, text: &[TokenId]) {
        self.pages.publish(cache, text);
    }

    /// Continues `cache`, which holds the beginning of `text`, with pages known by that text, up to
    /// its last token but one. Returns how many positions need no pass now: their bits are those
    /// that a pass would compute, where the device keeps the law of [`crate::ops`].
    pub fn reuse(&mut self, cache: &mut SeqCache, text: &[TokenId]) -> usize {
        self.pages.reuse(cache, text)
    }

    /// Gives every page of `cache` back.
    pub fn release(&mut self, cache: &mut SeqCache) {
        self.pages.release(cache);
    }

    /// The stored bits of the committed positions of `cache`, position by position: two caches with
    /// the same history are equal here wherever their pages lie.
    ///
    /// # Errors
    /// The device's own.
    pub fn committed_bytes(&self, cache: &SeqCache) -> Result<Vec<Vec<u8>>, EngineError> {
        (0..cache.len()).map(|index| self.ops.slot_bytes(cache.slot(index))).collect()
    }
}

fn keep(
    ops: &mut dyn Ops,
    captures: &[usize],
    layer: usize,
    step: &super::rows::Step<'_>,
) -> Result<(), EngineError> {
    for (index, _) in captures.iter().enumerate().filter(|&(_, &capture)| capture == layer) {
        ops.keep_hidden(index, step)?;
    }
    Ok(())
}
