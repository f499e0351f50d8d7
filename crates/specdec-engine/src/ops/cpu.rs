//! The CPU device: packed weights, paged keys and values, and an arena of activations that is made
//! once; no step allocates beyond it.

use super::{Memory, Ops};
use crate::cache::Move;
use crate::error::EngineError;
use crate::load::{ModelConfig, config::Gate};
use crate::model::rows::Step;
use crate::model::weights::Weights;
use specdec_kernels::{
    Activation, Acts, Cpu, Forms, KvStore, KvType, Matrix, Partials, PoolError, Product, Rope,
    Store, attention, geglu, linear, rms_norm, rms_norm_heads, rope_append, swiglu,
};
use std::ops::Range;
use std::sync::Arc;

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
        let acts = [config.hidden, q, config.ffn].map(|cols| Acts::row_bytes(cols, all));
        let row = floats * size_of::<f32>() + acts.iter().sum::<usize>();
        let logits = config.vocab * size_of::<f32>() + Acts::row_bytes(config.hidden, all);
        let hidden = self.captures * config.hidden * size_of::<f32>();
        let partials = Partials::bytes_for(self.rows, config.heads, config.head_dim);
        self.rows * row + self.logits * logits + self.hidden * hidden + partials
    }

    /// Whether the system gives that much; the arena itself would end the process if not.
    fn check_room(&self, config: &ModelConfig) -> Result<(), EngineError> {
        let bytes = self.most_activations(config);
        let refused = |_| EngineError::Activations { bytes, rows: self.rows, logits: self.logits };
        let mut room: Vec<u8> = Vec::new();
        let reserved = room.try_reserve_exact(bytes).map_err(refused);
        // Or the compiler does without room that nobody uses.
        std::hint::black_box(&room);
        reserved
    }
}

/// A weight matrix with its bias.
struct Linear {
    matrix: Matrix,
    bias: Option<Vec<f32>>,
}

struct Layer {
    attention_norm: Vec<f32>,
    q: Linear,
    k: Linear,
    v: Linear,
    /// Norms of the heads of queries and keys.
    head_norms: Option<(Vec<f32>, Vec<f32>)>,
    out: Linear,
    attention_post: Option<Vec<f32>>,
    ffn_norm: Vec<f32>,
    gate: Linear,
    up: Linear,
    down: Linear,
    ffn_post: Option<Vec<f32>>,
}

/// The model's parameters in packed form.
struct Parameters {
    embedding: Matrix,
    layers: Vec<Layer>,
    final_norm: Vec<f32>,
    /// `None`: the embedding table is the head too.
    head: Option<Matrix>,
}

/// The registers of one pass.
struct Arena {
    x: Vec<f32>,
    normed: Acts,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    partials: Partials,
    attended: Acts,
    gate: Vec<f32>,
    up: Vec<f32>,
    activated: Acts,
    head_in: Acts,
    logits: Vec<f32>,
    hidden: Vec<Vec<f32>>,
    /// What half a layer adds, where a norm stands before the addition.
    branch: Vec<f32>,
    /// Angles on layers without a window, and on those with one.
    rotations: [Vec<f32>; 2],
    all_rows: Vec<u32>,
}

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

impl Linear {
    fn load(cpu: &Cpu, weights: &mut Weights<'_>, name: &str) -> Result<Self, EngineError> {
        let matrix = weights.matrix(cpu, &format!("{name}.weight"))?;
        let bias = weights.optional_values(&format!("{name}.bias"))?;
        Ok(Self { matrix, bias })
    }

    /// One of the projections that `name` holds together.
    fn part(
        cpu: &Cpu,
        weights: &mut Weights<'_>,
        name: &str,
        rows: Range<usize>,
    ) -> Result<Self, EngineError> {
        Ok(Self { matrix: weights.rows(cpu, &format!("{name}.weight"), Some(rows))?, bias: None })
    }

    fn product<'a>(&'a self, store: Store, out: &'a mut [f32]) -> Product<'a> {
        Product { matrix: &self.matrix, bias: self.bias.as_deref(), store, out }
    }

    fn bytes(&self) -> usize {
        self.matrix.bytes() + self.bias.as_ref().map_or(0, |bias| size_of_val(bias.as_slice()))
    }
}

impl Layer {
    fn load(
        cpu: &Cpu,
        config: &ModelConfig,
        weights: &mut Weights<'_>,
        layer: usize,
    ) -> Result<Self, EngineError> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let attention_norm = weights.values(&name("attn_norm.weight"))?;
        let [q, k, v] = Self::qkv(cpu, config, weights, &name)?;
        let head_norms = match weights.optional_values(&name("attn_q_norm.weight"))? {
            Some(q) => Some((q, weights.values(&name("attn_k_norm.weight"))?)),
            None => None,
        };
        let out = Linear::load(cpu, weights, &name("attn_output"))?;
        let attention_post = weights.optional_values(&name("post_attention_norm.weight"))?;
        let ffn_norm = weights.values(&name("ffn_norm.weight"))?;
        let [gate, up] = Self::gate_up(cpu, config, weights, &name)?;
        let down = Linear::load(cpu, weights, &name("ffn_down"))?;
        let ffn_post = weights.optional_values(&name("post_ffw_norm.weight"))?;
        Ok(Self {
            attention_norm,
            q,
            k,
            v,
            head_norms,
            out,
            attention_post,
            ffn_norm,
            gate,
            up,
            down,
            ffn_post,
        })
    }

    fn qkv(
        cpu: &Cpu,
        config: &ModelConfig,
        weights: &mut Weights<'_>,
        name: &impl Fn(&str) -> String,
    ) -> Result<[Linear; 3], EngineError> {
        if !config.fused {
            let mut one = |part: &str| Linear::load(cpu, weights, &name(part));
            return Ok([one("attn_q")?, one("attn_k")?, one("attn_v")?]);
        }
        let q = config.heads * config.head_dim;
        let kv = config.kv_heads * config.head_dim;
        let mut part = |rows| Linear::part(cpu, weights, &name("attn_qkv"), rows);
        Ok([part(0..q)?, part(q..q + kv)?, part(q + kv..q + 2 * kv)?])
    }

    fn gate_up(
        cpu: &Cpu,
        config: &ModelConfig,
        weights: &mut Weights<'_>,
        name: &impl Fn(&str) -> String,
    ) -> Result<[Linear; 2], EngineError> {
        if !config.fused {
            let mut one = |part: &str| Linear::load(cpu, weights, &name(part));
            return Ok([one("ffn_gate")?, one("ffn_up")?]);
        }
        let mut part = |rows| Linear::part(cpu, weights, &name("ffn_up"), rows);
        Ok([part(0..config.ffn)?, part(config.ffn..2 * config.ffn)?])
    }

    fn matrices(&self) -> [&Linear; 7] {
        [&self.q, &self.k, &self.v, &self.out, &self.gate, &self.up, &self.down]
    }

    fn bytes(&self) -> usize {
        let heads = self.head_norms.iter().flat_map(|(q, k)| [q, k]);
        let posts = self.attention_post.iter().chain(&self.ffn_post);
        let norms = [&self.attention_norm, &self.ffn_norm].into_iter().chain(heads).chain(posts);
        let matrices: usize = self.matrices().map(Linear::bytes).iter().sum();
        matrices + norms.map(|norm| size_of_val(norm.as_slice())).sum::<usize>()
    }
}

impl Parameters {
    fn load(
        cpu: &Cpu,
        config: &ModelConfig,
        weights: &mut Weights<'_>,
    ) -> Result<Self, EngineError> {
        let embedding = weights.matrix(cpu, "token_embd.weight")?;
        let layers = (0..config.layers)
            .map(|layer| Layer::load(cpu, config, weights, layer))
            .collect::<Result<_, _>>()?;
        let final_norm = weights.values("output_norm.weight")?;
        let head =
            if config.tied_embeddings { None } else { Some(weights.matrix(cpu, "output.weight")?) };
        Ok(Self { embedding, layers, final_norm, head })
    }

    fn head(&self) -> &Matrix {
        self.head.as_ref().unwrap_or(&self.embedding)
    }

    fn bytes(&self) -> usize {
        let layers: usize = self.layers.iter().map(Layer::bytes).sum();
        let head = self.head.as_ref().map_or(0, Matrix::bytes);
        self.embedding.bytes() + head + layers + size_of_val(self.final_norm.as_slice())
    }

    fn bytes_read(&self) -> usize {
        self.bytes() - self.head.as_ref().map_or(0, |_| self.embedding.bytes())
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

impl Arena {
    fn new(config: &ModelConfig, parameters: &Parameters, sizes: &CpuSizes) -> Self {
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

    fn bytes(&self) -> usize {
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
    fn norm(&mut self, cpu: &Cpu, rows: usize, weight: &[f32], eps: f32) -> Result<(), PoolError> {
        rms_norm(cpu, &self.x, &self.all_rows[..rows], weight, eps, &mut self.normed)
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
