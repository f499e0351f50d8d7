//! What a model is: sizes, rotary embedding, the tensors it must have.

mod arch;
mod tensors;

pub use arch::Architecture;
pub use specdec_kernels::RopeKind;
pub use tensors::{Role, Shape, TensorSpec};

use super::{
    LoadError,
    gguf::{FromValue, Header},
};
use arch::Keys;

/// A checked configuration: every tensor it implies is in the file with the shape it implies.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Family of the decoder.
    pub architecture: Architecture,
    /// Number of decoder layers, 1 to 1024.
    pub layers: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width of the feed-forward layer.
    pub ffn: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head: a multiple of 16 from 16 to 256.
    pub head_dim: usize,
    /// Rows of the embedding table; at least the number of tokens of the tokenizer.
    pub vocab: usize,
    /// Positions the model was trained for.
    pub context_length: usize,
    /// Epsilon of the root-mean-square norms.
    pub rms_eps: f32,
    /// Base of the rotary frequencies.
    pub rope_base: f32,
    /// Which elements of a head are rotated together.
    pub rope_kind: RopeKind,
    /// Whether the query, key and value projections have biases.
    pub qkv_bias: bool,
    /// Whether the output head is the embedding table.
    pub tied_embeddings: bool,
}

impl ModelConfig {
    /// Products with weights that one row costs: those of every matrix of every layer and of the
    /// head. Attention's own products, which grow with the context, are not among them.
    pub fn macs_per_row(&self) -> usize {
        let (q, kv) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let layer = self.hidden * (2 * q + 2 * kv + 3 * self.ffn);
        self.layers * layer + self.hidden * self.vocab
    }

    /// Reads the configuration and proves it against the tensors of the file.
    ///
    /// # Errors
    /// An unsupported architecture or feature, a key that is missing, of another type or out of
    /// range, a tensor that is missing, of another shape, or unknown to the architecture.
    pub fn from_gguf(header: &Header) -> Result<Self, LoadError> {
        let architecture = Architecture::from_gguf(header)?;
        let keys = Keys::new(header, architecture);
        keys.refuse_unsupported()?;
        let heads = keys.size("attention.head_count", 1..=1024)?;
        let hidden = keys.size("embedding_length", 1..=1 << 20)?;
        let config = Self {
            architecture,
            layers: keys.size("block_count", 1..=1024)?,
            hidden,
            ffn: keys.size("feed_forward_length", 1..=1 << 22)?,
            heads,
            kv_heads: keys.kv_heads(heads)?,
            head_dim: keys.head_dim(hidden, heads)?,
            vocab: keys.vocab()?,
            context_length: keys.size("context_length", 1..=1 << 26)?,
            rms_eps: keys.rms_eps()?,
            rope_base: keys.rope_base()?,
            rope_kind: architecture.rope_kind(),
            qkv_bias: tensors::has_qkv_bias(header, architecture),
            tied_embeddings: header.tensor(tensors::HEAD).is_none(),
        };
        tensors::check(header, &config)?;
        Ok(config)
    }

    /// Every tensor of the model with its shape, in the order of a forward pass.
    pub fn tensors(&self) -> Vec<TensorSpec> {
        tensors::all(self)
    }
}

/// Reads `key` and checks it with `accept`; `expected` words the rule.
fn checked<'a, T: FromValue<'a> + Copy + std::fmt::Display>(
    header: &'a Header,
    key: &str,
    expected: &str,
    accept: impl Fn(T) -> bool,
) -> Result<Option<T>, LoadError> {
    match header.find::<T>(key)? {
        Some(found) if !accept(found) => Err(LoadError::KeyValue {
            key: key.to_owned(),
            found: found.to_string(),
            expected: expected.to_owned(),
        }),
        found => Ok(found),
    }
}
