//! The model's parameters, packed for the kernels.

use crate::error::EngineError;
use crate::load::ModelConfig;
use crate::model::weights::Weights;
use specdec_kernels::{Cpu, Matrix, Product, Store};
use std::ops::Range;

/// A weight matrix with its bias.
pub(super) struct Linear {
    pub(super) matrix: Matrix,
    pub(super) bias: Option<Vec<f32>>,
}

pub(super) struct Layer {
    pub(super) attention_norm: Vec<f32>,
    pub(super) q: Linear,
    pub(super) k: Linear,
    pub(super) v: Linear,
    /// Norms of the heads of queries and keys.
    pub(super) head_norms: Option<(Vec<f32>, Vec<f32>)>,
    pub(super) out: Linear,
    pub(super) attention_post: Option<Vec<f32>>,
    pub(super) ffn_norm: Vec<f32>,
    pub(super) gate: Linear,
    pub(super) up: Linear,
    pub(super) down: Linear,
    pub(super) ffn_post: Option<Vec<f32>>,
}

/// The model's parameters in packed form.
pub(super) struct Parameters {
    pub(super) embedding: Matrix,
    pub(super) layers: Vec<Layer>,
    pub(super) final_norm: Vec<f32>,
    /// `None`: the embedding table is the head too.
    pub(super) head: Option<Matrix>,
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

    pub(super) fn product<'a>(&'a self, store: Store, out: &'a mut [f32]) -> Product<'a> {
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

    pub(super) fn matrices(&self) -> [&Linear; 7] {
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
    pub(super) fn load(
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

    pub(super) fn head(&self) -> &Matrix {
        self.head.as_ref().unwrap_or(&self.embedding)
    }

    pub(super) fn bytes(&self) -> usize {
        let layers: usize = self.layers.iter().map(Layer::bytes).sum();
        let head = self.head.as_ref().map_or(0, Matrix::bytes);
        self.embedding.bytes() + head + layers + size_of_val(self.final_norm.as_slice())
    }

    pub(super) fn bytes_read(&self) -> usize {
        self.bytes() - self.head.as_ref().map_or(0, |_| self.embedding.bytes())
    }
}
