//! The CPU device: packed weights, paged keys and values, an arena of activations, and the kernels
//! that a pass runs on them.

mod arena;
mod weights;

pub use arena::CpuSizes;

use super::{Memory, Ops};
use crate::cache::Move;
use crate::error::EngineError;
use crate::load::{ModelConfig, config::Gate};
use crate::model::rows::Step;
use crate::model::weights::Weights;
use arena::Arena;
use specdec_kernels::{
    Acts, Cpu, KvStore, PoolError, Product, Rope, Store, attention, geglu, linear, rms_norm,
    rms_norm_heads, rope_append, swiglu,
};
use std::sync::Arc;
use weights::{Linear, Parameters};

/// A model on the CPU.
pub struct CpuOps {
    cpu: Arc<Cpu>,
    config: ModelConfig,
    sizes: CpuSizes,
    parameters: Parameters,
    /// On layers without a window, and on those with one.
    ropes: [Rope; 2],
    kv: KvStore,
    arena: Arena,
    logits_len: usize,
    hidden_len: usize,
}

impl CpuOps {
    /// Packs the weights of a model and makes its arena. Several models may share a `cpu`.
    ///
    /// # Errors
    /// [`EngineError::Load`] and [`EngineError::Tensor`] for the file, [`EngineError::Kv`] for a
    /// cache that cannot be had.
    pub fn load(
        cpu: impl Into<Arc<Cpu>>,
        config: &ModelConfig,
        weights: &mut Weights<'_>,
        sizes: CpuSizes,
    ) -> Result<Self, EngineError> {
        let cpu = cpu.into();
        let parameters = Parameters::load(&cpu, config, weights)?;
        let kv = KvStore::new(
            config.layers,
            sizes.pages,
            config.kv_heads,
            config.head_dim,
            sizes.kv_type,
        )?;
        sizes.check_room(config)?;
        let arena = Arena::new(config, &parameters, &sizes);
        let divisors = weights.rope_divisors(config)?;
        let near = config.window.map_or(config.rope_base, |window| window.rope_base);
        let rope = |base, divisors| Rope::new(config.rope_kind, config.head_dim, base, divisors);
        // Only windows with angles of their own are not stretched with the others.
        let own = near.to_bits() != config.rope_base.to_bits();
        let near_divisors = if own { None } else { divisors.as_deref() };
        let ropes = [rope(config.rope_base, divisors.as_deref()), rope(near, near_divisors)];
        let config = config.clone();
        Ok(Self { cpu, config, sizes, parameters, ropes, kv, arena, logits_len: 0, hidden_len: 0 })
    }

    /// Where its kernels run.
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    fn q_width(&self) -> usize {
        self.config.heads * self.config.head_dim
    }

    fn kv_width(&self) -> usize {
        self.config.kv_heads * self.config.head_dim
    }
}

/// `x += W from`, or `x += norm(W from)` where there is a `post` norm, for the first `rows` rows.
#[expect(clippy::too_many_arguments, reason = "half a layer's end, all its operands")]
fn add(
    cpu: &Cpu,
    weights: &Linear,
    from: &Acts,
    rows: usize,
    post: Option<&[f32]>,
    eps: f32,
    branch: &mut [f32],
    x: &mut [f32],
) -> Result<(), PoolError> {
    let width = rows * weights.matrix.rows();
    let Some(post) = post else {
        return linear(cpu, from, rows, &mut [weights.product(Store::Add, &mut x[..width])]);
    };
    let branch = &mut branch[..width];
    linear(cpu, from, rows, &mut [weights.product(Store::Set, branch)])?;
    // A row of the residual stream is one head of its width.
    rms_norm_heads(cpu, branch, post, eps)?;
    for (x, branch) in x.iter_mut().zip(branch) {
        *x += *branch;
    }
    Ok(())
}

impl Ops for CpuOps {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn max_rows(&self) -> usize {
        self.sizes.rows
    }

    fn max_logits(&self) -> usize {
        self.sizes.logits
    }

    fn pages(&self) -> usize {
        self.sizes.pages
    }

    fn embed(&mut self, step: &Step<'_>) -> Result<(), EngineError> {
        let width = self.config.hidden;
        for (&token, x) in step.batch.tokens().iter().zip(self.arena.x.chunks_exact_mut(width)) {
            self.parameters.embedding.dequantise_row(token as usize, x);
            if self.config.embedding_scale.to_bits() != 1f32.to_bits() {
                for value in x {
                    *value *= self.config.embedding_scale;
                }
            }
        }
        let used = if self.config.window.is_some() { 2 } else { 1 };
        for (rope, rotations) in self.ropes[..used].iter().zip(&mut self.arena.rotations) {
            rope.table(step.batch.positions(), rotations);
        }
        Ok(())
    }

    fn qkv(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let rows = step.batch.len();
        let (q_width, kv_width) = (self.q_width(), self.kv_width());
        let weights = &self.parameters.layers[layer];
        let arena = &mut self.arena;
        arena.norm(&self.cpu, rows, &weights.attention_norm, self.config.rms_eps)?;
        let mut products = [
            weights.q.product(Store::Set, &mut arena.q[..rows * q_width]),
            weights.k.product(Store::Set, &mut arena.k[..rows * kv_width]),
            weights.v.product(Store::Set, &mut arena.v[..rows * kv_width]),
        ];
        linear(&self.cpu, &arena.normed, rows, &mut products)?;
        if let Some((q, k)) = &weights.head_norms {
            rms_norm_heads(&self.cpu, &mut arena.q[..rows * q_width], q, self.config.rms_eps)?;
            rms_norm_heads(&self.cpu, &mut arena.k[..rows * kv_width], k, self.config.rms_eps)?;
        }
        Ok(())
    }

    fn rope_append(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let rows = step.batch.len();
        let (q_width, kv_width) = (self.q_width(), self.kv_width());
        let near = usize::from(self.config.window_of(layer).is_some());
        let arena = &mut self.arena;
        Ok(rope_append(
            &self.cpu,
            &self.ropes[near],
            &arena.rotations[near],
            rows,
            &mut arena.q[..rows * q_width],
            &arena.k[..rows * kv_width],
            &arena.v[..rows * kv_width],
            step.batch.slots(),
            &mut self.kv,
            layer,
        )?)
    }

    fn attend(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let width = self.q_width();
        let Arena { q, partials, attended, .. } = &mut self.arena;
        let q = &q[..step.batch.len() * width];
        let (heads, scale) = (self.config.heads, self.config.attention_scale);
        let spans = step.spans(self.config.window_of(layer));
        Ok(attention(&self.cpu, &self.kv, layer, q, heads, spans, scale, partials, attended)?)
    }

    fn attention_out(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let weights = &self.parameters.layers[layer];
        let (rows, eps) = (step.batch.len(), self.config.rms_eps);
        let Arena { x, branch, attended, .. } = &mut self.arena;
        let post = weights.attention_post.as_deref();
        Ok(add(&self.cpu, &weights.out, attended, rows, post, eps, branch, x)?)
    }

    fn gate_up(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let rows = step.batch.len();
        let width = rows * self.config.ffn;
        let weights = &self.parameters.layers[layer];
        let arena = &mut self.arena;
        arena.norm(&self.cpu, rows, &weights.ffn_norm, self.config.rms_eps)?;
        let mut products = [
            weights.gate.product(Store::Set, &mut arena.gate[..width]),
            weights.up.product(Store::Set, &mut arena.up[..width]),
        ];
        linear(&self.cpu, &arena.normed, rows, &mut products)?;
        let (gate, up) = (&arena.gate[..width], &arena.up[..width]);
        let gated = match self.config.gate {
            Gate::Silu => swiglu,
            Gate::Gelu => geglu,
        };
        Ok(gated(&self.cpu, gate, up, rows, &mut arena.activated)?)
    }

    fn down(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let weights = &self.parameters.layers[layer];
        let (rows, eps) = (step.batch.len(), self.config.rms_eps);
        let Arena { x, branch, activated, .. } = &mut self.arena;
        let post = weights.ffn_post.as_deref();
        Ok(add(&self.cpu, &weights.down, activated, rows, post, eps, branch, x)?)
    }

    fn keep_hidden(&mut self, index: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let width = self.config.hidden;
        let rows = step.batch.hidden_rows();
        self.hidden_len = rows.len() * width;
        for (&row, kept) in rows.iter().zip(self.arena.hidden[index].chunks_exact_mut(width)) {
            kept.copy_from_slice(&self.arena.x[row as usize * width..][..width]);
        }
        Ok(())
    }

    fn head(&mut self, step: &Step<'_>) -> Result<(), EngineError> {
        let select = step.batch.logits_rows();
        self.logits_len = select.len() * self.config.vocab;
        if select.is_empty() {
            return Ok(());
        }
        let arena = &mut self.arena;
        let norm = &self.parameters.final_norm;
        let eps = self.config.rms_eps;
        rms_norm(&self.cpu, &arena.x, select, norm, eps, &mut arena.head_in)?;
        let out = &mut arena.logits[..self.logits_len];
        let matrix = self.parameters.head();
        let product = Product { matrix, bias: None, store: Store::Set, out };
        Ok(linear(&self.cpu, &arena.head_in, select.len(), &mut [product])?)
    }

    fn logits(&self) -> &[f32] {
        &self.arena.logits[..self.logits_len]
    }

    fn hidden(&self, index: usize) -> &[f32] {
        &self.arena.hidden[index][..self.hidden_len]
    }

    fn move_slots(&mut self, moves: &[Move]) -> Result<(), EngineError> {
        for step in moves {
            self.kv.copy_slot(step.from, step.to);
        }
        Ok(())
    }

    fn slot_bytes(&self, slot: u32) -> Result<Vec<u8>, EngineError> {
        Ok((0..self.config.layers).flat_map(|layer| self.kv.slot_bytes(layer, slot)).collect())
    }

    fn memory(&self) -> Memory {
        Memory {
            weights: self.parameters.bytes(),
            weights_read: self.parameters.bytes_read(),
            kv: self.kv.bytes(),
            activations: self.arena.bytes(),
        }
    }
}
