//! Tiny models as transformers writes them: a folder with `config.json`, `tokenizer.json` and weights
//! in safetensors, of the same recipe and with the same numbers as the GGUF file.

use std::path::Path;

use half::{bf16, f16};
use serde_json::{Map, Value, json};

use crate::gguf::{Arch, Format, RopeScaling, SPECIALS, Tensor, TinyModel, Vocabulary};

/// Number type of the weights.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Dtype {
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
}

impl Dtype {
    fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
        }
    }

    fn torch_name(self) -> &'static str {
        match self {
            Self::F32 => "float32",
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
        }
    }

    fn bytes(self, number: f32) -> Vec<u8> {
        match self {
            Self::F32 => number.to_le_bytes().to_vec(),
            Self::F16 => f16::from_f32(number).to_le_bytes().to_vec(),
            Self::Bf16 => bf16::from_f32(number).to_le_bytes().to_vec(),
        }
    }

    /// The number as this type holds it.
    pub fn round(self, number: f32) -> f32 {
        match self {
            Self::F32 => number,
            Self::F16 => f16::from_f32(number).to_f32(),
            Self::Bf16 => bf16::from_f32(number).to_f32(),
        }
    }
}

/// A tensor of a folder: shape outermost first.
#[derive(Clone, PartialEq, Debug)]
pub struct Weight {
    /// Name as transformers has it.
    pub name: String,
    /// Rows, columns.
    pub shape: Vec<u64>,
    /// Numbers row by row.
    pub numbers: Vec<f32>,
}

/// The bytes of a safetensors file.
pub fn safetensors(weights: &[Weight], dtype: Dtype) -> Vec<u8> {
    let mut header = Map::new();
    let mut data = Vec::new();
    for weight in weights {
        let start = data.len();
        data.extend(weight.numbers.iter().flat_map(|&number| dtype.bytes(number)));
        let entry = json!({
            "dtype": dtype.name(),
            "shape": weight.shape,
            "data_offsets": [start, data.len()],
        });
        header.insert(weight.name.clone(), entry);
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut out = (header.len() as u64).to_le_bytes().to_vec();
    out.extend(header);
    out.extend(data);
    out
}

/// Writes a model's folder with its weights in so many files. Only models in `F32` have one.
///
/// # Panics
/// When the recipe is wrong or a file cannot be written: only tests call this.
pub fn write(model: &TinyModel, folder: &Path, dtype: Dtype, shards: usize) {
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    };
    put("config.json", config(model, dtype).to_string().as_bytes());
    put("tokenizer.json", tokenizer(model).to_string().as_bytes());
    let settings = json!({ "chat_template": crate::gguf::CHAT_TEMPLATE });
    put("tokenizer_config.json", settings.to_string().as_bytes());
    let weights = weights(model);
    if shards == 1 {
        put("model.safetensors", &safetensors(&weights, dtype));
        return;
    }
    let mut map = Map::new();
    for (number, part) in weights.chunks(weights.len().div_ceil(shards)).enumerate() {
        let name = format!("model-{:05}-of-{shards:05}.safetensors", number + 1);
        map.extend(part.iter().map(|weight| (weight.name.clone(), json!(name))));
        put(&name, &safetensors(part, dtype));
    }
    let index = json!({ "metadata": { "total_size": 0 }, "weight_map": map });
    put("model.safetensors.index.json", index.to_string().as_bytes());
}

/// The weights under the names of transformers.
///
/// # Panics
/// When the recipe is wrong or has other formats than `F32`.
pub fn weights(model: &TinyModel) -> Vec<Weight> {
    let file = model.gguf().unwrap_or_else(|error| panic!("{error}"));
    let factors = |tensor: &&Tensor| tensor.name != "rope_freqs.weight";
    file.tensors.iter().filter(factors).map(|tensor| weight(model, tensor)).collect()
}

fn weight(model: &TinyModel, tensor: &Tensor) -> Weight {
    assert_eq!(tensor.format, Format::F32, "{} is not in F32", tensor.name);
    let mut numbers: Vec<f32> =
        tensor.data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let (name, shape) = (theirs(model, &tensor.name), tensor.dims.iter().rev().copied().collect());
    if model.arch == Arch::Gemma3 && tensor.name.ends_with("norm.weight") {
        for number in &mut numbers {
            *number -= 1.0;
        }
    }
    let turned = ["attn_q.weight", "attn_k.weight"];
    if model.arch == Arch::Llama && turned.iter().any(|part| tensor.name.ends_with(part)) {
        numbers = apart(&numbers, model.head_dim, model.hidden);
    }
    Weight { name, shape, numbers }
}

/// Rows 2i and 2i + 1 of each head become its rows i and i + d/2.
fn apart(numbers: &[f32], head_dim: usize, cols: usize) -> Vec<f32> {
    let mut out = Vec::with_capacity(numbers.len());
    for head in numbers.chunks(head_dim * cols) {
        let rows: Vec<&[f32]> = head.chunks(cols).collect();
        for first in [0, 1] {
            out.extend(rows.iter().skip(first).step_by(2).flat_map(|row| row.iter()));
        }
    }
    out
}

fn theirs(model: &TinyModel, name: &str) -> String {
    let top = match name {
        "token_embd.weight" => Some("model.embed_tokens.weight"),
        "output_norm.weight" => Some("model.norm.weight"),
        "output.weight" => Some("lm_head.weight"),
        _ => None,
    };
    if let Some(top) = top {
        return top.to_owned();
    }
    let parts: Vec<&str> = name.split('.').collect();
    let [_, layer, part, kind] = parts[..] else { panic!("{name} has no layer") };
    let gemma = model.arch == Arch::Gemma3;
    let part = match part {
        "attn_norm" => "input_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_qkv" => "self_attn.qkv_proj",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        "attn_output" => "self_attn.o_proj",
        "post_ffw_norm" => "post_feedforward_layernorm",
        "ffn_norm" if gemma => "pre_feedforward_layernorm",
        "ffn_norm" | "post_attention_norm" => "post_attention_layernorm",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" if model.arch == Arch::Phi3 => "mlp.gate_up_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        other => panic!("{other} has no name in transformers"),
    };
    format!("model.layers.{layer}.{part}.{kind}")
}

/// `config.json`.
pub fn config(model: &TinyModel, dtype: Dtype) -> Value {
    let (kind, class) = match model.arch {
        Arch::Llama if model.window.is_some() => ("mistral", "MistralForCausalLM"),
        Arch::Llama => ("llama", "LlamaForCausalLM"),
        Arch::Qwen2 => ("qwen2", "Qwen2ForCausalLM"),
        Arch::Qwen3 => ("qwen3", "Qwen3ForCausalLM"),
        Arch::Gemma3 => ("gemma3_text", "Gemma3ForCausalLM"),
        Arch::Phi3 => ("phi3", "Phi3ForCausalLM"),
    };
    let mut config = json!({
        "model_type": kind,
        "architectures": [class],
        "dtype": dtype.torch_name(),
        "num_hidden_layers": model.layers,
        "hidden_size": model.hidden,
        "intermediate_size": model.ffn,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "vocab_size": model.vocab,
        "max_position_embeddings": model.context,
        "rms_norm_eps": model.norm_eps,
        "rope_parameters": rope(model),
        "tie_word_embeddings": model.tied,
        "bos_token_id": null,
        "eos_token_id": Vocabulary::new(model.arch, model.vocab).special_id(2),
        "pad_token_id": null,
    });
    if let Some(window) = model.window {
        config["sliding_window"] = json!(window);
    }
    if model.arch == Arch::Gemma3 {
        let kind =
            |layer: usize| if layer % 6 == 5 { "full_attention" } else { "sliding_attention" };
        config["layer_types"] = (0..model.layers).map(kind).collect();
        config["query_pre_attn_scalar"] = json!(model.head_dim);
        config["hidden_activation"] = json!("gelu_pytorch_tanh");
    } else {
        config["hidden_act"] = json!("silu");
    }
    config
}

fn rope(model: &TinyModel) -> Value {
    let scaling: Option<&RopeScaling> = model.rope_scaling.as_ref();
    let mut rope = scaling.map_or(json!({ "rope_type": "default" }), |scaling| json!(scaling));
    rope["rope_theta"] = json!(model.rope_base);
    if model.arch != Arch::Gemma3 {
        return rope;
    }
    let local = json!({ "rope_type": "default", "rope_theta": 10000.0 });
    json!({ "full_attention": rope, "sliding_attention": local })
}

/// `tokenizer.json`: the byte-level vocabulary of the GGUF file.
pub fn tokenizer(model: &TinyModel) -> Value {
    let vocabulary = Vocabulary::new(model.arch, model.vocab);
    let ids = vocabulary.tokens.iter().enumerate();
    let special = |token: &str| SPECIALS.contains(&token);
    // The tokenizers library takes the id of an added token from here if it is not the next free one.
    let vocab: Map<String, Value> =
        ids.clone().map(|(id, token)| (token.clone(), json!(id))).collect();
    let added: Vec<Value> = ids
        .filter(|(_, token)| special(token))
        .map(|(id, token)| {
            json!({
                "id": id,
                "content": token,
                "single_word": false,
                "lstrip": false,
                "rstrip": false,
                "normalized": false,
                "special": true,
            })
        })
        .collect();
    let byte_level = |regex: bool| {
        json!({
            "type": "ByteLevel",
            "add_prefix_space": false,
            "trim_offsets": true,
            "use_regex": regex,
        })
    };
    let qwen = concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    );
    let split = json!({
        "type": "Split",
        "pattern": { "Regex": qwen },
        "behavior": "Isolated",
        "invert": false,
    });
    let steps = if matches!(model.arch, Arch::Qwen2 | Arch::Qwen3) {
        json!([split, byte_level(false)])
    } else {
        json!([{ "type": "Digits", "individual_digits": true }, byte_level(true)])
    };
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": steps },
        "post_processor": null,
        "decoder": byte_level(true),
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "vocab": vocab,
            "merges": vocabulary.merges.iter().map(|merge| json!(merge)).collect::<Vec<_>>(),
            "byte_fallback": false,
            "ignore_merges": false,
        },
    })
}
