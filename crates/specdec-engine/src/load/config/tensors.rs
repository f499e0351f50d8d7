//! The tensors of a decoder as one table: the weight loader walks it, the checks walk it.

use super::{Architecture, ModelConfig, RopeScaling};
use crate::load::{
    LoadError,
    gguf::{Header, TensorInfo},
};
use std::collections::HashSet;

pub(crate) const EMBEDDING: &str = "token_embd.weight";
pub(super) const HEAD: &str = "output.weight";
/// The divisors of the rotary angles.
pub(crate) const ROPE_FACTORS: &str = "rope_freqs.weight";

/// What a tensor does in the forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Token embeddings, one row a token.
    Embedding,
    /// Norm before attention.
    AttentionNorm,
    /// Query projection.
    Query,
    /// Its bias.
    QueryBias,
    /// Key projection.
    Key,
    /// Its bias.
    KeyBias,
    /// Query, key and value projections in one.
    QueryKeyValue,
    /// Norm of each head of the queries.
    QueryNorm,
    /// Norm of each head of the keys.
    KeyNorm,
    /// Value projection.
    Value,
    /// Its bias.
    ValueBias,
    /// Projection of the attention's output back to the residual stream.
    AttentionOutput,
    /// Norm of what attention adds to the residual stream.
    AttentionPostNorm,
    /// Norm before the feed-forward layer.
    FfnNorm,
    /// Gate of the feed-forward layer.
    FfnGate,
    /// Values that the gate multiplies.
    FfnUp,
    /// Gate and up in one.
    FfnGateUp,
    /// Projection back to the residual stream.
    FfnDown,
    /// Norm of what the feed-forward layer adds to the residual stream.
    FfnPostNorm,
    /// Divisors of the rotary angles.
    RopeFactors,
    /// Norm after the last layer.
    OutputNorm,
    /// Output head, one row a token; absent where the embedding table serves.
    Head,
}

/// Shape of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// So many values.
    Vector(usize),
    /// Rows of `cols` values each: maps `cols` inputs to `rows` outputs.
    Matrix {
        /// Outputs.
        rows: usize,
        /// Inputs.
        cols: usize,
    },
}

impl Shape {
    /// Dimensions as a GGUF file lists them, innermost first.
    pub fn dims(self) -> Vec<u64> {
        match self {
            Self::Vector(n) => vec![n as u64],
            Self::Matrix { rows, cols } => vec![cols as u64, rows as u64],
        }
    }
}

/// A tensor that the model must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Name in the file.
    pub name: String,
    /// Place in the forward pass.
    pub role: Role,
    /// Decoder layer, or `None` outside the layers.
    pub layer: Option<usize>,
    /// Shape it must have.
    pub shape: Shape,
}

/// A width that the configuration gives.
#[derive(Clone, Copy)]
enum Width {
    Hidden,
    Ffn,
    Queries,
    Keys,
    Head,
    AllThree,
    GateUp,
}

/// Tensors of a layer: name after `blk.N.`, role, outputs, inputs (`None`: a vector).
const LAYER: [(&str, Role, Width, Option<Width>); 18] = {
    use Width::{AllThree, Ffn, GateUp, Head, Hidden, Keys, Queries};
    [
        ("attn_norm.weight", Role::AttentionNorm, Hidden, None),
        ("attn_qkv.weight", Role::QueryKeyValue, AllThree, Some(Hidden)),
        ("attn_q.weight", Role::Query, Queries, Some(Hidden)),
        ("attn_q.bias", Role::QueryBias, Queries, None),
        ("attn_q_norm.weight", Role::QueryNorm, Head, None),
        ("attn_k.weight", Role::Key, Keys, Some(Hidden)),
        ("attn_k.bias", Role::KeyBias, Keys, None),
        ("attn_k_norm.weight", Role::KeyNorm, Head, None),
        ("attn_v.weight", Role::Value, Keys, Some(Hidden)),
        ("attn_v.bias", Role::ValueBias, Keys, None),
        ("attn_output.weight", Role::AttentionOutput, Hidden, Some(Queries)),
        ("post_attention_norm.weight", Role::AttentionPostNorm, Hidden, None),
        ("ffn_norm.weight", Role::FfnNorm, Hidden, None),
        ("ffn_gate.weight", Role::FfnGate, Ffn, Some(Hidden)),
        ("ffn_up.weight", Role::FfnUp, Ffn, Some(Hidden)),
        ("ffn_up.weight", Role::FfnGateUp, GateUp, Some(Hidden)),
        ("ffn_down.weight", Role::FfnDown, Hidden, Some(Ffn)),
        ("post_ffw_norm.weight", Role::FfnPostNorm, Hidden, None),
    ]
};

impl ModelConfig {
    fn width(&self, width: Width) -> usize {
        match width {
            Width::Hidden => self.hidden,
            Width::Ffn => self.ffn,
            Width::Queries => self.heads * self.head_dim,
            Width::Keys => self.kv_heads * self.head_dim,
            Width::Head => self.head_dim,
            Width::AllThree => (self.heads + 2 * self.kv_heads) * self.head_dim,
            Width::GateUp => 2 * self.ffn,
        }
    }

    /// Whether this model has the tensor at all.
    fn has(&self, role: Role) -> bool {
        match role {
            Role::QueryBias | Role::KeyBias | Role::ValueBias => self.qkv_bias,
            Role::Head => !self.tied_embeddings,
            Role::QueryNorm | Role::KeyNorm => self.head_norms,
            Role::AttentionPostNorm | Role::FfnPostNorm => self.post_norms,
            Role::QueryKeyValue | Role::FfnGateUp => self.fused,
            Role::Query | Role::Key | Role::Value | Role::FfnGate | Role::FfnUp => !self.fused,
            Role::RopeFactors => self.rope_scaling == RopeScaling::Tensor,
            _ => true,
        }
    }

    fn layer(&self, layer: usize) -> impl Iterator<Item = TensorSpec> {
        LAYER.iter().filter(|row| self.has(row.1)).map(move |&(name, role, rows, cols)| {
            let rows = self.width(rows);
            let shape = match cols {
                None => Shape::Vector(rows),
                Some(cols) => Shape::Matrix { rows, cols: self.width(cols) },
            };
            TensorSpec { name: format!("blk.{layer}.{name}"), role, layer: Some(layer), shape }
        })
    }
}

/// Qwen2 has these biases always, Llama where its first layer has one; a file that has only some
/// of them then lacks a required tensor.
pub(super) fn has_qkv_bias(header: &Header, architecture: Architecture) -> bool {
    let any =
        || ["q", "k", "v"].iter().any(|x| header.tensor(&format!("blk.0.attn_{x}.bias")).is_some());
    architecture == Architecture::Qwen2 || any()
}

pub(super) fn all(config: &ModelConfig) -> Vec<TensorSpec> {
    let table = Shape::Matrix { rows: config.vocab, cols: config.hidden };
    let outside =
        |name: &str, role, shape| TensorSpec { name: name.to_owned(), role, layer: None, shape };
    let mut specs = vec![outside(EMBEDDING, Role::Embedding, table)];
    specs.extend((0..config.layers).flat_map(|layer| config.layer(layer)));
    specs.push(outside("output_norm.weight", Role::OutputNorm, Shape::Vector(config.hidden)));
    if config.has(Role::RopeFactors) {
        let pairs = Shape::Vector(config.head_dim / 2);
        specs.push(outside(ROPE_FACTORS, Role::RopeFactors, pairs));
    }
    if config.has(Role::Head) {
        specs.push(outside(HEAD, Role::Head, table));
    }
    specs
}

/// Checks that the file has exactly the tensors of the configuration.
pub(super) fn check(header: &Header, config: &ModelConfig) -> Result<(), LoadError> {
    let specs = all(config);
    for spec in &specs {
        let tensor = header
            .tensor(&spec.name)
            .ok_or_else(|| LoadError::MissingTensor { name: spec.name.clone() })?;
        check_shape(tensor, spec.shape)?;
    }
    let known: HashSet<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    match header.tensors().iter().find(|tensor| !known.contains(tensor.name.as_str())) {
        None => Ok(()),
        Some(tensor) => Err(LoadError::UnknownTensor {
            name: tensor.name.clone(),
            architecture: config.architecture.name(),
        }),
    }
}

fn check_shape(tensor: &TensorInfo, shape: Shape) -> Result<(), LoadError> {
    let expected = shape.dims();
    if tensor.dims == expected {
        return Ok(());
    }
    Err(LoadError::TensorShape { name: tensor.name.clone(), found: tensor.dims.clone(), expected })
}
