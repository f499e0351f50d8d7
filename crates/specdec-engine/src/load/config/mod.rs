//! What a model is: sizes, rotary embedding, the tensors it must have.

mod arch;
mod rope;
mod tensors;

pub use arch::Architecture;
pub use rope::RopeScaling;
pub use specdec_kernels::RopeKind;
pub(crate) use tensors::{EMBEDDING, ROPE_FACTORS};
pub use tensors::{Role, Shape, TensorSpec};

use super::{
    LoadError,
    gguf::{FromValue, Header},
};
use arch::Keys;

/// Set where the halves of a head turn together, whatever GGUF files of the family have.
pub(super) const HALVES_KEY: &str = "specdec.rope_halves";
/// Set where norms multiply by 1 + what the file holds.
pub(crate) const LESS_ONE_KEY: &str = "specdec.norms_less_one";

/// The function of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// x times its sigmoid.
    Silu,
    /// The Gaussian error unit in the form with tanh.
    Gelu,
}

/// Layers that see only the positions nearby.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Positions seen, the row's own among them; at least 1.
    pub size: usize,
    /// Every so many layers one sees everything; 0: none does.
    pub every: usize,
    /// Base of the rotary frequencies on these layers; they are not stretched.
    pub rope_base: f32,
}

/// A checked configuration: every tensor it implies is in the file with the shape it implies.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a family")]
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
    /// How angles are stretched, on layers without a window.
    pub rope_scaling: RopeScaling,
    /// Layers that see only the positions nearby.
    pub window: Option<Window>,
    /// By what scores of attention are multiplied.
    pub attention_scale: f32,
    /// By what embeddings are multiplied.
    pub embedding_scale: f32,
    /// What gates the feed-forward layer.
    pub gate: Gate,
    /// Whether heads of queries and keys are normed before they are rotated.
    pub head_norms: bool,
    /// Whether a norm stands behind each half of a layer.
    pub post_norms: bool,
    /// Whether query, key and value are one matrix, and gate and up.
    pub fused: bool,
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
        let layers = keys.size("block_count", 1..=1024)?;
        let head_dim = keys.head_dim(hidden, heads)?;
        let context_length = keys.size("context_length", 1..=1 << 26)?;
        let rope_base = keys.rope_base()?;
        let rope_scaling = keys.rope_scaling(context_length)?;
        let config = Self {
            architecture,
            layers,
            hidden,
            ffn: keys.size("feed_forward_length", 1..=1 << 22)?,
            heads,
            kv_heads: keys.kv_heads(heads)?,
            head_dim,
            vocab: keys.vocab()?,
            context_length,
            rms_eps: keys.rms_eps()?,
            rope_base,
            rope_kind: match header.find(HALVES_KEY)? {
                Some(true) => RopeKind::Halves,
                _ => architecture.rope_kind(),
            },
            rope_scaling,
            window: keys.window(rope_base)?,
            attention_scale: rope_scaling.score_scale()
                / architecture.score_width(head_dim, hidden, heads, layers).sqrt(),
            embedding_scale: architecture.embedding_scale(hidden),
            gate: architecture.gate(),
            head_norms: architecture.head_norms(),
            post_norms: architecture.post_norms(),
            fused: architecture.fused(),
            qkv_bias: tensors::has_qkv_bias(header, architecture),
            tied_embeddings: header.tensor(tensors::HEAD).is_none(),
        };
        tensors::check(header, &config)?;
        Ok(config)
    }

    /// Positions that a row of `layer` sees, its own among them; `None`: all.
    pub fn window_of(&self, layer: usize) -> Option<usize> {
        let window = self.window.as_ref()?;
        let all = window.every > 0 && (layer + 1).is_multiple_of(window.every);
        (!all).then_some(window.size)
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
