//! A model's parameters as f32 tensors on one device.

use candle_core::{Device, Tensor};

use crate::{error::EngineError, load::ModelConfig, model::weights::Weights};

/// A weight matrix, out x in, with its bias.
pub(super) struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
}

pub(super) struct Layer {
    pub(super) attention_norm: Tensor,
    pub(super) q: Linear,
    pub(super) k: Linear,
    pub(super) v: Linear,
    pub(super) head_norms: Option<(Tensor, Tensor)>,
    pub(super) out: Linear,
    pub(super) attention_post: Option<Tensor>,
    pub(super) ffn_norm: Tensor,
    pub(super) gate: Linear,
    pub(super) up: Linear,
    pub(super) down: Linear,
    pub(super) ffn_post: Option<Tensor>,
}

pub(super) struct Parameters {
    pub(super) embedding: Tensor,
    pub(super) layers: Vec<Layer>,
    pub(super) final_norm: Tensor,
    pub(super) head: Linear,
    /// By what the turn of each rotary pair is divided.
    pub(super) divisors: Option<Vec<f32>>,
    bytes: usize,
    /// Without an embedding table that is not the head too.
    bytes_read: usize,
}

impl Linear {
    /// `x W^T + b`, rows x out.
    pub(super) fn apply(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        let y = x.matmul(&self.weight.t()?)?;
        match &self.bias {
            Some(bias) => y.broadcast_add(bias),
            None => Ok(y),
        }
    }
}

impl Parameters {
    pub(super) fn load(
        device: &Device,
        config: &ModelConfig,
        weights: &mut Weights<'_>,
    ) -> Result<Self, EngineError> {
        let mut reader = Reader { device, weights, bytes: 0 };
        let embedding = reader.matrix("token_embd.weight", config.vocab, config.hidden)?;
        let layers = (0..config.layers)
            .map(|i| reader.layer(config, i))
            .collect::<Result<_, EngineError>>()?;
        let final_norm = reader.vector("output_norm.weight")?;
        let weight = if config.tied_embeddings {
            embedding.clone()
        } else {
            reader.matrix("output.weight", config.vocab, config.hidden)?
        };
        let head = Linear { weight, bias: None };
        let table =
            if config.tied_embeddings { 0 } else { embedding.elem_count() * size_of::<f32>() };
        let (bytes, bytes_read) = (reader.bytes, reader.bytes - table);
        let divisors = reader.weights.rope_divisors(config)?;
        Ok(Self { embedding, layers, final_norm, head, divisors, bytes, bytes_read })
    }

    /// Bytes on the device.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Those of them that every pass reads.
    pub(super) fn bytes_read(&self) -> usize {
        self.bytes_read
    }
}

/// De-quantises tensors onto the device and counts their bytes.
struct Reader<'a, 'b> {
    device: &'a Device,
    weights: &'a mut Weights<'b>,
    bytes: usize,
}

impl Reader<'_, '_> {
    fn tensor(&mut self, values: Vec<f32>, shape: &[usize]) -> candle_core::Result<Tensor> {
        self.bytes += size_of_val(values.as_slice());
        Tensor::from_vec(values, shape, self.device)
    }

    fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Tensor, EngineError> {
        let values = self.weights.values(name)?;
        Ok(self.tensor(values, &[rows, cols])?)
    }

    fn vector(&mut self, name: &str) -> Result<Tensor, EngineError> {
        let values = self.weights.values(name)?;
        let len = values.len();
        Ok(self.tensor(values, &[len])?)
    }

    fn linear(&mut self, name: &str, rows: usize, cols: usize) -> Result<Linear, EngineError> {
        let weight = self.matrix(&format!("{name}.weight"), rows, cols)?;
        let bias = match self.weights.optional_values(&format!("{name}.bias"))? {
            Some(values) => Some(self.tensor(values, &[rows])?),
            None => None,
        };
        Ok(Linear { weight, bias })
    }

    fn optional_vector(&mut self, name: &str) -> Result<Option<Tensor>, EngineError> {
        let Some(values) = self.weights.optional_values(name)? else { return Ok(None) };
        let len = values.len();
        Ok(Some(self.tensor(values, &[len])?))
    }

    /// Some of the outputs of a projection.
    fn part(whole: &Linear, start: usize, rows: usize) -> Result<Linear, EngineError> {
        Ok(Linear { weight: whole.weight.narrow(0, start, rows)?.contiguous()?, bias: None })
    }

    fn layer(&mut self, config: &ModelConfig, layer: usize) -> Result<Layer, EngineError> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let (hidden, ffn) = (config.hidden, config.ffn);
        let (rows, kv) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let (q, k, v, gate, up) = if config.fused {
            let all = self.linear(&name("attn_qkv"), rows + 2 * kv, hidden)?;
            let both = self.linear(&name("ffn_up"), 2 * ffn, hidden)?;
            let (q, k) = (Self::part(&all, 0, rows)?, Self::part(&all, rows, kv)?);
            let v = Self::part(&all, rows + kv, kv)?;
            (q, k, v, Self::part(&both, 0, ffn)?, Self::part(&both, ffn, ffn)?)
        } else {
            (
                self.linear(&name("attn_q"), rows, hidden)?,
                self.linear(&name("attn_k"), kv, hidden)?,
                self.linear(&name("attn_v"), kv, hidden)?,
                self.linear(&name("ffn_gate"), ffn, hidden)?,
                self.linear(&name("ffn_up"), ffn, hidden)?,
            )
        };
        let head_norms = match self.optional_vector(&name("attn_q_norm.weight"))? {
            Some(q) => Some((q, self.vector(&name("attn_k_norm.weight"))?)),
            None => None,
        };
        Ok(Layer {
            attention_norm: self.vector(&name("attn_norm.weight"))?,
            q,
            k,
            v,
            head_norms,
            out: self.linear(&name("attn_output"), hidden, rows)?,
            attention_post: self.optional_vector(&name("post_attention_norm.weight"))?,
            ffn_norm: self.vector(&name("ffn_norm.weight"))?,
            gate,
            up,
            down: self.linear(&name("ffn_down"), hidden, ffn)?,
            ffn_post: self.optional_vector(&name("post_ffw_norm.weight"))?,
        })
    }
}
