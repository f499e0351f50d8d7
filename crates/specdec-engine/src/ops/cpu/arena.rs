//! The registers of a pass, made once: no step allocates beyond them.

use super::weights::Parameters;
use crate::error::EngineError;
use crate::load::ModelConfig;
use specdec_kernels::{
    Activation, Acts, Cpu, Forms, KvType, Matrix, Partials, PoolError, rms_norm,
};

/// Sizes of the arena.
#[derive(Clone, Copy, Debug)]
pub struct CpuSizes {
    /// Most rows of one pass.
    pub rows: usize,
    /// Most rows of one pass that ask for logits.
    pub logits: usize,
    /// Most rows of one pass that ask for hidden states.
    pub hidden: usize,
    /// Layers whose input is captured for them.
    pub captures: usize,
    /// Pages of the KV cache.
    pub pages: usize,
    /// Storage type of keys and values.
    pub kv_type: KvType,
}

impl CpuSizes {
    /// Bytes of activations, known before the formats of the weights are: as if every register had
    /// all forms.
    pub(crate) fn most_activations(&self, config: &ModelConfig) -> usize {
        let all = Forms { int8x32: true, int8x256: true };
        let (q, kv) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let branch = if config.post_norms { config.hidden } else { 0 };
        let floats = config.hidden + branch + q + 2 * kv + 2 * config.ffn + 2 * config.head_dim + 1;
        let acts = [config.hidden, q, config.ffn].map(|cols| Acts::bytes_for(self.rows, cols, all));
        let rows = self.rows * floats * size_of::<f32>() + acts.iter().sum::<usize>();
        let logits = self.logits * config.vocab * size_of::<f32>()
            + Acts::bytes_for(self.logits, config.hidden, all);
        let hidden = self.hidden * self.captures * config.hidden * size_of::<f32>();
        let partials = Partials::bytes_for(self.rows, config.heads, config.head_dim);
        rows + logits + hidden + partials
    }

    /// Whether the system gives that much; the arena itself would end the process if not.
    pub(super) fn check_room(&self, config: &ModelConfig) -> Result<(), EngineError> {
        let bytes = self.most_activations(config);
        let refused = |_| EngineError::Activations { bytes, rows: self.rows, logits: self.logits };
        let mut room: Vec<u8> = Vec::new();
        let reserved = room.try_reserve_exact(bytes).map_err(refused);
        // Or the compiler does without room that nobody uses.
        std::hint::black_box(&room);
        reserved
    }
}

/// The registers of one pass.
pub(super) struct Arena {
    pub(super) x: Vec<f32>,
    pub(super) normed: Acts,
    pub(super) q: Vec<f32>,
    pub(super) k: Vec<f32>,
    pub(super) v: Vec<f32>,
    pub(super) partials: Partials,
    pub(super) attended: Acts,
    pub(super) gate: Vec<f32>,
    pub(super) up: Vec<f32>,
    pub(super) activated: Acts,
    pub(super) head_in: Acts,
    pub(super) logits: Vec<f32>,
    pub(super) hidden: Vec<Vec<f32>>,
    /// What half a layer adds, where a norm stands before the addition.
    pub(super) branch: Vec<f32>,
    /// Angles on layers without a window, and on those with one.
    pub(super) rotations: [Vec<f32>; 2],
    pub(super) all_rows: Vec<u32>,
}

impl Arena {
    pub(super) fn new(config: &ModelConfig, parameters: &Parameters, sizes: &CpuSizes) -> Self {
        let (rows, q_width) = (sizes.rows, config.heads * config.head_dim);
        let kv_width = config.kv_heads * config.head_dim;
        let layers = || parameters.layers.iter();
        let normed =
            forms(layers().flat_map(|l| {
                [&l.q.matrix, &l.k.matrix, &l.v.matrix, &l.gate.matrix, &l.up.matrix]
            }));
        let attended = forms(layers().map(|l| &l.out.matrix));
        let activated = forms(layers().map(|l| &l.down.matrix));
        let head = forms(std::iter::once(parameters.head()));
        Self {
            x: vec![0.0; rows * config.hidden],
            normed: Acts::new(rows, config.hidden, normed),
            q: vec![0.0; rows * q_width],
            k: vec![0.0; rows * kv_width],
            v: vec![0.0; rows * kv_width],
            partials: Partials::new(rows, config.heads, config.head_dim),
            attended: Acts::new(rows, q_width, attended),
            gate: vec![0.0; rows * config.ffn],
            up: vec![0.0; rows * config.ffn],
            activated: Acts::new(rows, config.ffn, activated),
            head_in: Acts::new(sizes.logits, config.hidden, head),
            logits: vec![0.0; sizes.logits * config.vocab],
            hidden: vec![vec![0.0; sizes.hidden * config.hidden]; sizes.captures],
            branch: vec![0.0; if config.post_norms { rows * config.hidden } else { 0 }],
            rotations: [0; 2].map(|_| Vec::with_capacity(rows * config.head_dim)),
            all_rows: (0..rows as u32).collect(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let floats =
            [&self.x, &self.q, &self.k, &self.v, &self.gate, &self.up, &self.logits, &self.branch];
        let floats =
            floats.into_iter().chain(&self.hidden).map(|part| size_of_val(part.as_slice()));
        let acts = [&self.normed, &self.attended, &self.activated, &self.head_in].map(Acts::bytes);
        let grown = self.rotations.iter().map(|part| part.capacity() * size_of::<f32>());
        let rest = self.partials.bytes() + size_of_val(self.all_rows.as_slice());
        floats.chain(acts).chain(grown).sum::<usize>() + rest
    }

    /// `normed = norm(x)` for the first `rows` rows, with the int8 forms that its readers want.
    pub(super) fn norm(
        &mut self,
        cpu: &Cpu,
        rows: usize,
        weight: &[f32],
        eps: f32,
    ) -> Result<(), PoolError> {
        rms_norm(cpu, &self.x, &self.all_rows[..rows], weight, eps, &mut self.normed)
    }
}

/// The int8 forms that the readers of one register want, over all layers.
fn forms<'a>(readers: impl Iterator<Item = &'a Matrix>) -> Forms {
    let mut forms = Forms::default();
    for reader in readers {
        match reader.format().activation() {
            Activation::F32 => {}
            Activation::Int8x32 => forms.int8x32 = true,
            Activation::Int8x256 => forms.int8x256 = true,
        }
    }
    forms
}
