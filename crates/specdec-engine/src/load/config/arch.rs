//! The supported families and their metadata keys.

use super::{super::LoadError, checked, tensors};
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
}

impl Architecture {
    const ALL: [Self; 2] = [Self::Llama, Self::Qwen2];

    /// Name in `general.architecture`, and the prefix of the model's keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
        }
    }

    pub(super) fn rope_kind(self) -> RopeKind {
        match self {
            Self::Llama => RopeKind::Pairs,
            Self::Qwen2 => RopeKind::Halves,
        }
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

    /// Refuses what would change the model's output and has no code here.
    pub(super) fn refuse_unsupported(&self) -> Result<(), LoadError> {
        for (name, harmless) in NOT_YET {
            let key = self.key(name);
            let Some(value) = self.header.entries().find(|(k, _)| *k == key).map(|(_, v)| v) else {
                continue;
            };
            if !harmless(value) {
                return Err(LoadError::Unsupported { field: key, found: shown(value) });
            }
        }
        if let Some(tensor) = self.header.tensor(tensors::ROPE_FACTORS) {
            let found = format!("{} frequency factors", tensor.cols());
            return Err(LoadError::Unsupported { field: tensor.name.clone(), found });
        }
        Ok(())
    }
}

/// A key and the values under which it changes nothing.
type Harmless = (&'static str, fn(&Value) -> bool);

const NOT_YET: [Harmless; 13] = [
    ("rope.scaling.type", |v| [b"none".as_slice(), b"linear"].iter().any(|t| is_text(v, t))),
    ("rope.scaling.factor", is_one),
    ("rope.scaling.attn_factor", is_one),
    ("rope.scale_linear", is_one),
    ("expert_count", is_zero),
    ("attention.sliding_window", is_zero),
    ("attention.causal", |v| *v == Value::Bool(true)),
    ("attention.scale", is_zero),
    ("attention.clamp_kqv", is_zero),
    ("attn_logit_softcapping", is_zero),
    ("final_logit_softcapping", is_zero),
    ("logit_scale", |v| is_zero(v) || is_one(v)),
    ("use_parallel_residual", |v| *v == Value::Bool(false)),
];

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
