//! The plain device: the operations on candle tensors, f32, weights de-quantised at load.
//!
//! It says what the fast device must compute, and runs wherever candle does: only the `Device` given
//! at construction differs between the CPU and CUDA. Row invariance is not promised here: candle may
//! sum in another order for another number of rows.

mod cache;
mod math;
mod weights;

use candle_core::{DType, Device, Tensor};

use self::{
    cache::{Cache, View},
    math::{Rotations, attention, rms_norm},
    weights::Parameters,
};
use super::{Memory, Ops};
use crate::{
    cache::Move,
    error::EngineError,
    load::{ModelConfig, config::Gate},
    model::rows::Step,
    model::weights::Weights,
};

/// Bounds of one pass and of the cache.
#[derive(Clone, Copy, Debug)]
pub struct CandleSizes {
    /// Most rows of one pass.
    pub rows: usize,
    /// Most rows of one pass that ask for logits.
    pub logits: usize,
    /// Layers whose input is captured for the rows that ask.
    pub captures: usize,
    /// Pages of the cache.
    pub pages: usize,
}

/// What the rows' positions and slots give, the same for every layer.
struct Geometry {
    /// On layers without a window, and on those with one.
    rotations: [Rotations; 2],
    slots: Tensor,
    views: [View; 2],
}

/// The registers of one pass: one row a row; q, k and v by heads.
struct Registers {
    x: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attended: Tensor,
    activated: Tensor,
}

/// A model on a candle device.
pub struct CandleOps {
    device: Device,
    config: ModelConfig,
    sizes: CandleSizes,
    parameters: Parameters,
    cache: Cache,
    geometry: Option<Geometry>,
    registers: Registers,
    logits: Vec<f32>,
    hidden: Vec<Vec<f32>>,
}

impl CandleOps {
    /// Puts the weights of a model and an empty cache onto `device`.
    ///
    /// # Errors
    /// [`EngineError::Load`] and [`EngineError::Tensor`] for the file, [`EngineError::Candle`] for
    /// the device.
    pub fn load(
        device: Device,
        config: &ModelConfig,
        weights: &mut Weights<'_>,
        sizes: CandleSizes,
    ) -> Result<Self, EngineError> {
        let nothing = Tensor::zeros((1, 1), DType::F32, &device)?;
        let registers = Registers {
            x: nothing.clone(),
            q: nothing.clone(),
            k: nothing.clone(),
            v: nothing.clone(),
            attended: nothing.clone(),
            activated: nothing,
        };
        Ok(Self {
            parameters: Parameters::load(&device, config, weights)?,
            cache: Cache::new(&device, config, sizes.pages)?,
            config: config.clone(),
            device,
            sizes,
            geometry: None,
            registers,
            logits: Vec::new(),
            hidden: vec![Vec::new(); sizes.captures],
        })
    }

    fn geometry(&self) -> Result<&Geometry, EngineError> {
        let reason = "has no position yet: a pass begins with the embedding";
        self.geometry.as_ref().ok_or(EngineError::Rows { row: 0, reason })
    }

    /// Which of two a layer uses: 1 with a window.
    fn near(&self, layer: usize) -> usize {
        usize::from(self.config.window_of(layer).is_some())
    }

    /// `x += branch`, normed first where there is a norm.
    fn add(&mut self, branch: Tensor, post: Option<Tensor>) -> Result<(), EngineError> {
        let branch = match post {
            Some(post) => rms_norm(&branch, &post, self.config.rms_eps)?,
            None => branch,
        };
        self.registers.x = (&self.registers.x + branch)?;
        Ok(())
    }

    /// The values of some rows of `x`.
    fn rows_of(&self, x: &Tensor, rows: &[u32]) -> Result<Vec<f32>, EngineError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let rows = x.index_select(&Tensor::new(rows, &self.device)?, 0)?;
        Ok(rows.flatten_all()?.to_vec1()?)
    }
}

impl Ops for CandleOps {
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
        let (device, batch, config) = (&self.device, step.batch, &self.config);
        let tokens = Tensor::new(batch.tokens(), device)?;
        let x = self.parameters.embedding.index_select(&tokens, 0)?;
        self.registers.x = (x * f64::from(config.embedding_scale))?;
        let rotations = |base, divisors| {
            Rotations::new(device, batch.positions(), config.head_dim, base, divisors)
        };
        let near = config.window.map_or(config.rope_base, |window| window.rope_base);
        let divisors = self.parameters.divisors.as_deref();
        let own = near.to_bits() != config.rope_base.to_bits();
        let near_spans = step.spans(config.window.map(|window| window.size));
        self.geometry = Some(Geometry {
            rotations: [
                rotations(config.rope_base, divisors)?,
                rotations(near, if own { None } else { divisors })?,
            ],
            slots: Tensor::new(batch.slots(), device)?,
            views: [View::new(device, &step.spans)?, View::new(device, near_spans)?],
        });
        Ok(())
    }

    fn qkv(&mut self, layer: usize, step: &Step<'_>) -> Result<(), EngineError> {
        let weights = &self.parameters.layers[layer];
        let registers = &mut self.registers;
        let h = rms_norm(&registers.x, &weights.attention_norm, self.config.rms_eps)?;
        let (rows, d) = (step.batch.len(), self.config.head_dim);
        registers.q = weights.q.apply(&h)?.reshape((rows, self.config.heads, d))?;
        registers.k = weights.k.apply(&h)?.reshape((rows, self.config.kv_heads, d))?;
        registers.v = weights.v.apply(&h)?.reshape((rows, self.config.kv_heads, d))?;
        if let Some((q, k)) = &weights.head_norms {
            registers.q = rms_norm(&registers.q, q, self.config.rms_eps)?;
            registers.k = rms_norm(&registers.k, k, self.config.rms_eps)?;
        }
        Ok(())
    }

    fn rope_append(&mut self, layer: usize, _: &Step<'_>) -> Result<(), EngineError> {
        let Geometry { rotations, slots, .. } = self.geometry()?;
        let rotations = &rotations[self.near(layer)];
        let registers = &self.registers;
        let q = rotations.apply(&registers.q, self.config.rope_kind)?;
        let k = rotations.apply(&registers.k, self.config.rope_kind)?;
        self.cache.write(layer, slots, &k, &registers.v)?;
        self.registers.q = q;
        Ok(())
    }

    fn attend(&mut self, layer: usize, _: &Step<'_>) -> Result<(), EngineError> {
        let view = &self.geometry()?.views[self.near(layer)];
        let (k, v) = self.cache.read(layer, &view.slots)?;
        self.registers.attended =
            attention(&self.registers.q, &k, &v, &view.mask, self.config.attention_scale)?;
        Ok(())
    }

    fn attention_out(&mut self, layer: usize, _: &Step<'_>) -> Result<(), EngineError> {
        let weights = &self.parameters.layers[layer];
        let out = weights.out.apply(&self.registers.attended)?;
        self.add(out, weights.attention_post.clone())
    }

    fn gate_up(&mut self, layer: usize, _: &Step<'_>) -> Result<(), EngineError> {
        let weights = &self.parameters.layers[layer];
        let h = rms_norm(&self.registers.x, &weights.ffn_norm, self.config.rms_eps)?;
        let gate = weights.gate.apply(&h)?;
        let gate = match self.config.gate {
            Gate::Silu => gate.silu()?,
            Gate::Gelu => gate.gelu()?,
        };
        self.registers.activated = (gate * weights.up.apply(&h)?)?;
        Ok(())
    }

    fn down(&mut self, layer: usize, _: &Step<'_>) -> Result<(), EngineError> {
        let weights = &self.parameters.layers[layer];
        let out = weights.down.apply(&self.registers.activated)?;
        self.add(out, weights.ffn_post.clone())
    }

    fn keep_hidden(&mut self, index: usize, step: &Step<'_>) -> Result<(), EngineError> {
        self.hidden[index] = self.rows_of(&self.registers.x, step.batch.hidden_rows())?;
        Ok(())
    }

    fn head(&mut self, step: &Step<'_>) -> Result<(), EngineError> {
        let select = step.batch.logits_rows();
        if select.is_empty() {
            self.logits.clear();
            return Ok(());
        }
        let x = self.registers.x.index_select(&Tensor::new(select, &self.device)?, 0)?;
        let h = rms_norm(&x, &self.parameters.final_norm, self.config.rms_eps)?;
        self.logits = self.parameters.head.apply(&h)?.flatten_all()?.to_vec1()?;
        Ok(())
    }

    fn logits(&self) -> &[f32] {
        &self.logits
    }

    fn hidden(&self, index: usize) -> &[f32] {
        &self.hidden[index]
    }

    fn move_slots(&mut self, moves: &[Move]) -> Result<(), EngineError> {
        Ok(self.cache.copy(&self.device, moves)?)
    }

    fn slot_bytes(&self, slot: u32) -> Result<Vec<u8>, EngineError> {
        Ok(self.cache.slot_bytes(slot)?)
    }

    fn memory(&self) -> Memory {
        let Registers { x, q, k, v, attended, activated } = &self.registers;
        let elements: usize =
            [x, q, k, v, attended, activated].map(Tensor::elem_count).iter().sum();
        Memory {
            weights: self.parameters.bytes(),
            weights_read: self.parameters.bytes_read(),
            kv: self.cache.bytes(),
            activations: (elements + self.logits.len()) * size_of::<f32>(),
        }
    }
}
