//! `config.json` of transformers as the metadata of a GGUF file, so that one set of checks serves
//! both.

use super::header::damaged;
use crate::load::{
    LoadError,
    config::{HALVES_KEY, LESS_ONE_KEY},
    gguf::Value,
};
use serde_json::{Map, Value as Json};

const FILE: &str = "config.json";

/// Metadata by key.
pub(super) type Entries = Vec<(String, Value)>;

/// What a family is called there and here, and what its configuration leaves out.
struct Family {
    theirs: &'static str,
    ours: &'static str,
    /// Base of the rotary frequencies unless the file says.
    rope_base: f64,
    /// Whether the head is the embedding table unless the file says.
    tied: bool,
    /// Whether norms multiply by 1 + what the file holds.
    norms_less_one: bool,
    /// Whether a `sliding_window` counts without a switch beside it.
    window: bool,
}

const FAMILIES: [Family; 6] = {
    const fn family(theirs: &'static str, ours: &'static str) -> Family {
        let (rope_base, tied, norms_less_one) = (10_000.0, false, false);
        Family { theirs, ours, rope_base, tied, norms_less_one, window: false }
    }
    [
        family("llama", "llama"),
        Family { window: true, ..family("mistral", "llama") },
        family("qwen2", "qwen2"),
        family("qwen3", "qwen3"),
        Family {
            rope_base: 1e6,
            tied: true,
            norms_less_one: true,
            window: true,
            ..family("gemma3_text", "gemma3")
        },
        Family { window: true, ..family("phi3", "phi3") },
    ]
};

/// A required size: their name, ours.
const SIZES: [(&str, &str); 5] = [
    ("num_hidden_layers", "block_count"),
    ("hidden_size", "embedding_length"),
    ("intermediate_size", "feed_forward_length"),
    ("num_attention_heads", "attention.head_count"),
    ("max_position_embeddings", "context_length"),
];

/// A setting, and the values under which it changes nothing.
type Neutral = (&'static str, fn(&Json) -> bool);

/// What would change the output and has no code here.
const NEUTRAL: [Neutral; 9] = [
    ("attn_logit_softcapping", Json::is_null),
    ("final_logit_softcapping", Json::is_null),
    ("mlp_bias", |v| *v == Json::Bool(false)),
    ("use_sliding_window", |v| *v == Json::Bool(false)),
    ("partial_rotary_factor", |v| v.as_f64() == Some(1.0)),
    ("pretraining_tp", |v| v.as_u64() == Some(1)),
    ("quantization_config", Json::is_null),
    ("use_bidirectional_attention", |v| *v == Json::Bool(false)),
    ("attention_multiplier", |v| v.as_f64() == Some(1.0)),
];

/// The configuration of a model.
pub(super) struct Config {
    pub(super) entries: Entries,
    /// Prefix of the architecture's keys.
    pub(super) arch: &'static str,
    /// Size of the vocabulary, where the configuration says.
    pub(super) vocab: Option<u64>,
    /// Whether the head is the embedding table, whatever tensors there are.
    pub(super) tied: bool,
    /// Ids of the tokens that begin and end a sequence, where the configuration says.
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
}

pub(super) fn read(json: &Map<String, Json>) -> Result<Config, LoadError> {
    let found = json.get("model_type").ok_or_else(|| missing("model_type"))?;
    let found = found.as_str().ok_or_else(|| wrong("model_type", found, "a string"))?;
    let family = FAMILIES.iter().find(|family| family.theirs == found);
    let family = family.ok_or_else(|| LoadError::Architecture {
        found: found.to_owned(),
        supported: FAMILIES.each_ref().map(|family| family.theirs).join(", "),
    })?;
    for (name, neutral) in NEUTRAL {
        if let Some(value) = json.get(name).filter(|value| !value.is_null() && !neutral(value)) {
            return Err(LoadError::Unsupported {
                field: name.to_owned(),
                found: value.to_string(),
            });
        }
    }
    let mut writer = Writer { json, arch: family.ours, entries: Vec::new() };
    writer.set_text("general.architecture".to_owned(), family.ours);
    writer.sizes()?;
    writer.rope(family)?;
    writer.window(family)?;
    // Here the two halves of a head turn together, whatever a GGUF file of the family has.
    writer.entries.push((HALVES_KEY.to_owned(), Value::Bool(true)));
    let less_one = Value::Bool(family.norms_less_one);
    writer.entries.push((LESS_ONE_KEY.to_owned(), less_one));
    let tied = match json.get("tie_word_embeddings") {
        None | Some(Json::Null) => family.tied,
        Some(Json::Bool(tied)) => *tied,
        Some(other) => return Err(wrong("tie_word_embeddings", other, "a boolean")),
    };
    let token = |name| json.get(name).and_then(first_id);
    let (bos, eos) = (token("bos_token_id"), token("eos_token_id"));
    let vocab = Writer::size(json, "vocab_size")?;
    Ok(Config { entries: writer.entries, arch: family.ours, vocab, tied, bos, eos })
}

/// An id, or the first of several.
fn first_id(value: &Json) -> Option<u32> {
    let value = value.as_array().map_or(Some(value), |all| all.first())?;
    value.as_u64()?.try_into().ok()
}

fn missing(name: &str) -> LoadError {
    LoadError::MissingKey { key: format!("{name} of {FILE}") }
}

fn wrong(name: &str, found: &Json, expected: &str) -> LoadError {
    let found: String = found.to_string().chars().take(64).collect();
    let (key, expected) = (format!("{name} of {FILE}"), expected.to_owned());
    LoadError::KeyValue { key, found, expected }
}

struct Writer<'a> {
    json: &'a Map<String, Json>,
    arch: &'static str,
    entries: Entries,
}

impl Writer<'_> {
    fn set(&mut self, name: &str, value: Value) {
        self.entries.push((format!("{}.{name}", self.arch), value));
    }

    fn set_text(&mut self, key: String, text: &str) {
        self.entries.push((key, Value::String(text.as_bytes().into())));
    }

    fn size(json: &Map<String, Json>, name: &str) -> Result<Option<u64>, LoadError> {
        match json.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => match value.as_u64() {
                Some(size) => Ok(Some(size)),
                None => Err(wrong(name, value, "a non-negative integer")),
            },
        }
    }

    fn number(json: &Map<String, Json>, name: &str) -> Result<Option<f64>, LoadError> {
        match json.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) => Ok(Some(number)),
                None => Err(wrong(name, value, "a number")),
            },
        }
    }

    fn sizes(&mut self) -> Result<(), LoadError> {
        for (theirs, ours) in SIZES {
            let size = Self::size(self.json, theirs)?.ok_or_else(|| missing(theirs))?;
            self.set(ours, Value::Unsigned(size));
        }
        if let Some(heads) = Self::size(self.json, "num_key_value_heads")? {
            self.set("attention.head_count_kv", Value::Unsigned(heads));
        }
        if let Some(width) = Self::size(self.json, "head_dim")? {
            self.set("attention.key_length", Value::Unsigned(width));
        } else if self.arch == "gemma3" {
            self.set("attention.key_length", Value::Unsigned(256));
        }
        let eps =
            Self::number(self.json, "rms_norm_eps")?.ok_or_else(|| missing("rms_norm_eps"))?;
        self.set("attention.layer_norm_rms_epsilon", Value::Float(eps));
        match self.json.get("hidden_act").or_else(|| self.json.get("hidden_activation")) {
            None => Ok(()),
            Some(act) if act == "silu" && self.arch != "gemma3" => Ok(()),
            Some(act) if act == "gelu_pytorch_tanh" && self.arch == "gemma3" => Ok(()),
            Some(act) => Err(wrong("hidden_act", act, "the family's own activation")),
        }
    }

    /// `rope_parameters`, or `rope_theta` and `rope_scaling` of older files.
    fn rope(&mut self, family: &Family) -> Result<(), LoadError> {
        let empty = Map::new();
        let json = self.json;
        let mut rope = json.get("rope_parameters").and_then(Json::as_object);
        if let Some(full) = rope.and_then(|all| all.get("full_attention")) {
            let local = rope.and_then(|all| all.get("sliding_attention")).and_then(Json::as_object);
            if let Some(base) = Self::number(local.unwrap_or(&empty), "rope_theta")? {
                self.set("rope.freq_base_swa", Value::Float(base));
            }
            rope = full.as_object();
        } else if let Some(base) = Self::number(json, "rope_local_base_freq")? {
            self.set("rope.freq_base_swa", Value::Float(base));
        }
        let scaling = rope.or_else(|| json.get("rope_scaling").and_then(Json::as_object));
        let base = match Self::number(rope.unwrap_or(&empty), "rope_theta")? {
            Some(base) => Some(base),
            None => Self::number(json, "rope_theta")?,
        };
        self.set("rope.freq_base", Value::Float(base.unwrap_or(family.rope_base)));
        if let Some(part) = Self::number(rope.unwrap_or(&empty), "partial_rotary_factor")?
            && part.to_bits() != 1f64.to_bits()
        {
            let field = "partial_rotary_factor".to_owned();
            return Err(LoadError::Unsupported { field, found: part.to_string() });
        }
        scaling.map_or(Ok(()), |scaling| self.scaling(scaling))
    }

    fn scaling(&mut self, scaling: &Map<String, Json>) -> Result<(), LoadError> {
        let kind = scaling.get("rope_type").or_else(|| scaling.get("type"));
        let kind = kind.map_or("default", |kind| kind.as_str().unwrap_or("unreadable"));
        let names = match kind {
            "default" => return Ok(()),
            "linear" => &[("factor", "factor", 1)][..],
            "llama3" => &[
                ("factor", "factor", 1),
                ("low_freq_factor", "low", 1),
                ("high_freq_factor", "high", 1),
                ("original_max_position_embeddings", "original_context_length", 1),
            ],
            "yarn" => &[
                ("factor", "factor", 1),
                ("original_max_position_embeddings", "original_context_length", 0),
                ("beta_fast", "yarn_beta_fast", 0),
                ("beta_slow", "yarn_beta_slow", 0),
            ],
            other => {
                let (field, found) = ("rope_scaling".to_owned(), format!("{other:?}"));
                return Err(LoadError::Unsupported { field, found });
            }
        };
        for refused in ["attention_factor", "mscale", "mscale_all_dim"] {
            if let Some(value) = scaling.get(refused).filter(|value| !value.is_null()) {
                let (field, found) = (format!("rope_scaling.{refused}"), value.to_string());
                return Err(LoadError::Unsupported { field, found });
            }
        }
        self.set("rope.scaling.type", Value::String(kind.as_bytes().into()));
        for (theirs, ours, needed) in names {
            match Self::number(scaling, theirs)? {
                Some(number) if ours.ends_with("length") => {
                    self.set(&format!("rope.scaling.{ours}"), Value::Unsigned(number as u64));
                }
                Some(number) => self.set(&format!("rope.scaling.{ours}"), Value::Float(number)),
                None if *needed == 1 => return Err(missing(&format!("rope_scaling.{theirs}"))),
                None => {}
            }
        }
        Ok(())
    }

    fn window(&mut self, family: &Family) -> Result<(), LoadError> {
        if !family.window {
            return Ok(());
        }
        let Some(size) = Self::size(self.json, "sliding_window")? else { return Ok(()) };
        self.set("attention.sliding_window", Value::Unsigned(size));
        let Some(kinds) = self.json.get("layer_types").and_then(Json::as_array) else {
            if let Some(every) = Self::size(self.json, "sliding_window_pattern")? {
                self.set("attention.sliding_window_pattern", Value::Unsigned(every));
            }
            return Ok(());
        };
        let full = |at: &usize| kinds[*at] == "full_attention";
        let every = (0..kinds.len()).find(full).map_or(0, |first| first + 1);
        let regular =
            (0..kinds.len()).all(|at| full(&at) == (every > 0 && (at + 1).is_multiple_of(every)));
        if !regular || (self.arch != "gemma3" && every > 0) {
            return Err(damaged(FILE, "layer_types has no regular pattern".to_owned()));
        }
        self.set("attention.sliding_window_pattern", Value::Unsigned(every as u64));
        Ok(())
    }
}
