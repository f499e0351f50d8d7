//! The supported families and their metadata keys.

use super::{super::LoadError, Gate, RopeScaling, Window, checked, rope::yarn_attention, tensors};
use crate::load::gguf::{FromValue, Header, Strings, Value};
use specdec_kernels::RopeKind;
use std::ops::RangeInclusive;

/// A family of decoders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Llama and what shares its graph (`SmolLM2`, Mistral).
    Llama,
    /// Qwen2 and Qwen2.5: Llama with biases on query, key and value.
    Qwen2,
    /// Qwen3: Llama with norms on the heads of queries and keys.
    Qwen3,
    /// Gemma 3: norms on heads and behind both halves of a layer, gelu, most layers with a window.
    Gemma3,
    /// Phi-3: Llama with fused projections and a window.
    Phi3,
}

impl Architecture {
    const ALL: [Self; 5] = [Self::Llama, Self::Qwen2, Self::Qwen3, Self::Gemma3, Self::Phi3];

    /// Name in `general.architecture`, and the prefix of the model's keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Gemma3 => "gemma3",
            Self::Phi3 => "phi3",
        }
    }

    pub(super) fn rope_kind(self) -> RopeKind {
        match self {
            Self::Llama => RopeKind::Pairs,
            Self::Qwen2 | Self::Qwen3 | Self::Gemma3 | Self::Phi3 => RopeKind::Halves,
        }
    }

    /// Whether heads of queries and keys have norms.
    pub(super) fn head_norms(self) -> bool {
        matches!(self, Self::Qwen3 | Self::Gemma3)
    }

    /// Whether a norm stands behind each half of a layer.
    pub(super) fn post_norms(self) -> bool {
        self == Self::Gemma3
    }

    /// Whether projections of one input are one matrix.
    pub(super) fn fused(self) -> bool {
        self == Self::Phi3
    }

    /// Whether a window is known to mean that a layer, or all of them, see so many positions.
    fn windows(self) -> bool {
        !matches!(self, Self::Qwen2 | Self::Qwen3)
    }

    pub(super) fn gate(self) -> Gate {
        if self == Self::Gemma3 { Gate::Gelu } else { Gate::Silu }
    }

    /// Scores are divided by the root of this. The largest Gemma 3 has its own idea.
    pub(super) fn score_width(
        self,
        head_dim: usize,
        hidden: usize,
        heads: usize,
        layers: usize,
    ) -> f32 {
        let own = self == Self::Gemma3 && layers == 62;
        if own { hidden as f32 / heads as f32 } else { head_dim as f32 }
    }

    /// By what embeddings are multiplied.
    pub(super) fn embedding_scale(self, hidden: usize) -> f32 {
        if self == Self::Gemma3 { (hidden as f32).sqrt() } else { 1.0 }
    }

    pub(super) fn from_gguf(header: &Header) -> Result<Self, LoadError> {
        let found: &str = header.get("general.architecture")?;
        Self::ALL.into_iter().find(|known| known.name() == found).ok_or_else(|| {
            LoadError::Architecture {
                found: found.to_owned(),
                supported: Self::ALL.map(Self::name).join(", "),
            }
        })
    }
}

/// The keys of one model, prefixed by its architecture.
pub(super) struct Keys<'a> {
    header: &'a Header,
    architecture: Architecture,
}

impl<'a> Keys<'a> {
    pub(super) fn new(header: &'a Header, architecture: Architecture) -> Self {
        Self { header, architecture }
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture.name())
    }

    fn find<T: FromValue<'a>>(&self, name: &str) -> Result<Option<T>, LoadError> {
        self.header.find(&self.key(name))
    }

    fn missing(&self, name: &str) -> LoadError {
        LoadError::MissingKey { key: self.key(name) }
    }

    fn wrong(&self, name: &str, found: usize, expected: impl Into<String>) -> LoadError {
        LoadError::KeyValue {
            key: self.key(name),
            found: found.to_string(),
            expected: expected.into(),
        }
    }

    /// A required size within a range.
    pub(super) fn size(&self, name: &str, range: RangeInclusive<u32>) -> Result<usize, LoadError> {
        let words = format!("{} to {}", range.start(), range.end());
        let found = checked(self.header, &self.key(name), &words, |n| range.contains(&n))?;
        found.map(|n: u32| n as usize).ok_or_else(|| self.missing(name))
    }

    /// As many as query heads unless the file says otherwise.
    pub(super) fn kv_heads(&self, heads: usize) -> Result<usize, LoadError> {
        let name = "attention.head_count_kv";
        let found = self.find::<u32>(name)?.map_or(heads, |n| n as usize);
        if found == 0 || !heads.is_multiple_of(found) {
            return Err(self.wrong(name, found, format!("a divisor of the {heads} heads")));
        }
        Ok(found)
    }

    /// `attention.key_length`, or the residual stream divided among the heads. Values are as wide
    /// as keys, and the rotary embedding turns the whole head.
    pub(super) fn head_dim(&self, hidden: usize, heads: usize) -> Result<usize, LoadError> {
        let name = "attention.key_length";
        let head_dim = match self.find::<u32>(name)? {
            Some(found) => found as usize,
            None if hidden.is_multiple_of(heads) => hidden / heads,
            None => {
                let expected = format!("a multiple of the {heads} heads");
                return Err(self.wrong("embedding_length", hidden, expected));
            }
        };
        if !head_dim.is_multiple_of(16) || !(16..=256).contains(&head_dim) {
            return Err(self.wrong(name, head_dim, "a multiple of 16 from 16 to 256"));
        }
        for name in ["attention.value_length", "rope.dimension_count"] {
            if let Some(found) = self.find::<u32>(name)?.filter(|&n| n as usize != head_dim) {
                return Err(self.wrong(
                    name,
                    found as usize,
                    format!("the width of a head, {head_dim}"),
                ));
            }
        }
        Ok(head_dim)
    }

    /// Rows of the embedding table; the tokenizer's ids must fit.
    pub(super) fn vocab(&self) -> Result<usize, LoadError> {
        let table = self
            .header
            .tensor(tensors::EMBEDDING)
            .ok_or_else(|| LoadError::MissingTensor { name: tensors::EMBEDDING.to_owned() })?;
        let Ok(vocab @ 1..) = i32::try_from(table.rows()) else {
            return Err(LoadError::TensorDims {
                name: table.name.clone(),
                dims: table.dims.clone(),
                reason: "a vocabulary has fewer than 2^31 tokens",
            });
        };
        let vocab = vocab as usize;
        let key = "tokenizer.ggml.tokens";
        match self.header.find::<&Strings>(key)?.map(Strings::len) {
            Some(tokens) if tokens > vocab => Err(LoadError::KeyValue {
                key: key.to_owned(),
                found: format!("{tokens} tokens"),
                expected: format!("at most the {vocab} rows of the embedding table"),
            }),
            _ => Ok(vocab),
        }
    }

    pub(super) fn rms_eps(&self) -> Result<f32, LoadError> {
        let name = "attention.layer_norm_rms_epsilon";
        let small = |eps: f32| eps > 0.0 && eps < 1.0;
        checked(self.header, &self.key(name), "a number between 0 and 1", small)?
            .ok_or_else(|| self.missing(name))
    }

    /// 10,000 unless the file says otherwise, as in the paper on rotary embeddings.
    pub(super) fn rope_base(&self) -> Result<f32, LoadError> {
        let fine = |base: f32| base.is_finite() && base > 1.0;
        let key = self.key("rope.freq_base");
        Ok(checked(self.header, &key, "a finite number above 1", fine)?.unwrap_or(10_000.0))
    }

    /// A positive number under a key that may be missing.
    fn positive(&self, name: &str) -> Result<Option<f32>, LoadError> {
        let fine = |x: f32| x.is_finite() && x > 0.0;
        checked(self.header, &self.key(name), "a finite number above 0", fine)
    }

    /// Which layers see how far. Gemma 3 has a window on five layers of six, with angles of their
    /// own; others on all.
    pub(super) fn window(&self, rope_base: f32) -> Result<Option<Window>, LoadError> {
        let size = match self.find::<u32>("attention.sliding_window")? {
            Some(size @ 1..) if self.architecture.windows() => size as usize,
            _ => return Ok(None),
        };
        if self.architecture != Architecture::Gemma3 {
            return Ok(Some(Window { size, every: 0, rope_base }));
        }
        let every = self.find::<u32>("attention.sliding_window_pattern")?.unwrap_or(6) as usize;
        let rope_base = self.positive("rope.freq_base_swa")?.unwrap_or(10_000.0);
        Ok(Some(Window { size, every, rope_base }))
    }

    pub(super) fn rope_scaling(&self, context: usize) -> Result<RopeScaling, LoadError> {
        let kind = self.find::<&str>("rope.scaling.type")?;
        let factor = match self.positive("rope.scaling.factor")? {
            Some(factor) => Some(factor),
            None => self.positive("rope.scale_linear")?,
        };
        // A factor of 1 stretches nothing.
        let factor = factor.filter(|factor| factor.to_bits() != 1f32.to_bits());
        if let Some(tensor) = self.header.tensor(tensors::ROPE_FACTORS) {
            if factor.is_some() {
                let found = "frequency factors beside rope.scaling.factor".to_owned();
                return Err(LoadError::Unsupported { field: tensor.name.clone(), found });
            }
            return Ok(RopeScaling::Tensor);
        }
        if kind == Some("llama3") {
            return self.llama3();
        }
        match (kind, factor) {
            (Some("yarn"), Some(factor)) => {
                let original = self.find::<u32>("rope.scaling.original_context_length")?;
                let beta = |name, usual| Ok::<_, LoadError>(self.positive(name)?.unwrap_or(usual));
                let longer = beta("rope.scaling.attn_factor", 1.0)?;
                Ok(RopeScaling::Yarn {
                    factor,
                    original: original.map_or(context as f32 / factor, |n| n as f32),
                    beta_fast: beta("rope.scaling.yarn_beta_fast", 32.0)?,
                    beta_slow: beta("rope.scaling.yarn_beta_slow", 1.0)?,
                    attention: yarn_attention(factor) * longer,
                })
            }
            (Some("yarn"), None) if self.positive("rope.scaling.factor")?.is_none() => {
                Err(self.missing("rope.scaling.factor"))
            }
            (Some("none"), _) | (_, None) => Ok(RopeScaling::None),
            (_, Some(factor)) => Ok(RopeScaling::Linear(factor)),
        }
    }

    /// The rule of Llama 3.1 as transformers writes it; GGUF files hold its results in a tensor.
    fn llama3(&self) -> Result<RopeScaling, LoadError> {
        let number = |name: &str| {
            let found = self.positive(name)?;
            found.ok_or_else(|| self.missing(name))
        };
        let original = "rope.scaling.original_context_length";
        let original = self.find::<u32>(original)?.ok_or_else(|| self.missing(original))?;
        let (low, high) = (number("rope.scaling.low")?, number("rope.scaling.high")?);
        if low >= high {
            let found = format!("{high}, with {low} below it");
            let key = self.key("rope.scaling.high");
            return Err(LoadError::KeyValue {
                key,
                found,
                expected: "more than the low".to_owned(),
            });
        }
        let factor = number("rope.scaling.factor")?;
        Ok(RopeScaling::Llama3 { factor, low, high, original: original as f32 })
    }

    /// Refuses what would change the model's output and has no code here.
    pub(super) fn refuse_unsupported(&self) -> Result<(), LoadError> {
        let window = ("attention.sliding_window", is_zero as fn(&Value) -> bool);
        let window = (!self.architecture.windows()).then_some(window);
        for (name, harmless) in NOT_YET.into_iter().chain(window) {
            let key = self.key(name);
            let Some(value) = self.header.entries().find(|(k, _)| *k == key).map(|(_, v)| v) else {
                continue;
            };
            if !harmless(value) {
                return Err(LoadError::Unsupported { field: key, found: shown(value) });
            }
        }
        let long = ["rope_factors_long.weight", "rope_factors_short.weight"];
        match long.iter().find_map(|name| self.header.tensor(name)) {
            Some(tensor) => Err(LoadError::Unsupported {
                field: tensor.name.clone(),
                found: format!("{} frequency factors of longrope", tensor.cols()),
            }),
            None => Ok(()),
        }
    }
}

/// A key and the values under which it changes nothing.
type Harmless = (&'static str, fn(&Value) -> bool);

const NOT_YET: [Harmless; 12] = [
    ("rope.scaling.type", |v| SCALINGS.iter().any(|name| is_text(v, name.as_bytes()))),
    ("rope.scaling.yarn_ext_factor", is_one),
    ("rope.scaling.yarn_attn_factor", is_one),
    ("rope.scaling.yarn_log_multiplier", is_zero),
    ("expert_count", is_zero),
    ("attention.causal", |v| *v == Value::Bool(true)),
    ("attention.scale", is_zero),
    ("attention.clamp_kqv", is_zero),
    ("attn_logit_softcapping", is_zero),
    ("final_logit_softcapping", is_zero),
    ("logit_scale", |v| is_zero(v) || is_one(v)),
    ("use_parallel_residual", |v| *v == Value::Bool(false)),
];

const SCALINGS: [&str; 4] = ["none", "linear", "llama3", "yarn"];

fn is_text(value: &Value, text: &[u8]) -> bool {
    matches!(value, Value::String(found) if **found == *text)
}

fn is_one(value: &Value) -> bool {
    matches!(value, Value::Unsigned(1) | Value::Signed(1)) || *value == Value::Float(1.0)
}

fn is_zero(value: &Value) -> bool {
    matches!(value, Value::Unsigned(0) | Value::Signed(0)) || *value == Value::Float(0.0)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Unsigned(n) => n.to_string(),
        Value::Signed(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::String(text) => format!("{:?}", String::from_utf8_lossy(text)),
        _ => value.type_name().to_owned(),
    }
}
