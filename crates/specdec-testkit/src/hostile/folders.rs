//! Folders of transformers of every family with one thing wrong.

use super::{Hostile, small};
use crate::{
    folder::{Dtype, Weight, config, safetensors, tokenizer, weights},
    gguf::TinyModel,
};
use serde_json::{Value, json};

/// The files of a sound folder.
pub(super) struct Parts {
    family: String,
    config: Value,
    tokenizer: Value,
    weights: Vec<Weight>,
}

impl Parts {
    pub(super) fn of(model: &TinyModel) -> Self {
        let config = config(model, Dtype::F32);
        let family = config["model_type"].as_str().unwrap_or_default().to_owned();
        Self { family, config, tokenizer: tokenizer(model), weights: weights(model) }
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        vec![
            ("config.json".to_owned(), self.config.to_string().into_bytes()),
            ("tokenizer.json".to_owned(), self.tokenizer.to_string().into_bytes()),
            ("model.safetensors".to_owned(), safetensors(&self.weights, Dtype::F32)),
        ]
    }

    fn case(&self, what: &str, expected: &str) -> Hostile {
        let (name, files) = (format!("{}: {what}", self.family), self.files());
        Hostile { name, files, expected: expected.to_owned() }
    }

    /// With other bytes in one file; none: without it.
    pub(super) fn with(
        &self,
        file: &str,
        bytes: Option<Vec<u8>>,
        what: &str,
        expected: &str,
    ) -> Hostile {
        let mut case = self.case(&format!("{file} {what}"), expected);
        case.files.retain(|(name, _)| name != file);
        case.files.extend(bytes.map(|bytes| (file.to_owned(), bytes)));
        case
    }
}

const INDEX: &str = "model.safetensors.index.json";

/// The files of a sound folder, by name.
pub fn sound_folder() -> Vec<(String, Vec<u8>)> {
    Parts::of(&small(TinyModel::llama())).files()
}

/// An index that fits it.
pub(super) fn sound_index() -> (String, Vec<u8>) {
    let parts = Parts::of(&small(TinyModel::llama()));
    let home = |weight: &Weight| (weight.name.clone(), json!("model.safetensors"));
    let map: serde_json::Map<_, _> = parts.weights.iter().map(home).collect();
    (INDEX.to_owned(), json!({ "weight_map": map }).to_string().into_bytes())
}

/// Malformed folders.
pub fn folders() -> Vec<Hostile> {
    let mut cases = Vec::new();
    for model in TinyModel::families() {
        let parts = Parts::of(&small(model));
        configs(&parts, &mut cases);
        tensors(&parts, &mut cases);
    }
    let parts = Parts::of(&small(TinyModel::llama()));
    headers(&parts, &mut cases);
    indices(&parts, &mut cases);
    tokenizers(&parts, &mut cases);
    texts(&parts, &mut cases);
    cases
}

const SIZES: [&str; 6] = [
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "max_position_embeddings",
    "rms_norm_eps",
];

fn configs(parts: &Parts, cases: &mut Vec<Hostile>) {
    let mut push = |key: &str, value: Option<Value>, expected: &str| {
        let mut config = parts.config.clone();
        let what = format!("with {key} = {value:?}");
        match (value, config.as_object_mut()) {
            (Some(value), Some(config)) => drop(config.insert(key.to_owned(), value)),
            (None, Some(config)) => drop(config.remove(key)),
            _ => {}
        }
        let bytes = config.to_string().into_bytes();
        cases.push(parts.with("config.json", Some(bytes), &what, expected));
    };
    for key in SIZES.into_iter().chain(["model_type"]) {
        push(key, None, &format!("MissingKey {{ key: \"{key} of config.json\""));
    }
    for key in SIZES {
        for value in [json!("2"), json!([1]), json!({}), json!(true)] {
            push(key, Some(value), &format!("KeyValue {{ key: \"{key} of config.json\""));
        }
        push(key, Some(json!(0)), "KeyValue");
        push(key, Some(json!(-1)), "KeyValue");
        push(key, Some(json!(1e300)), "KeyValue|KeyType");
    }
    push("model_type", Some(json!("mamba")), "Architecture");
    push("model_type", Some(json!(7)), "KeyValue");
    push("num_key_value_heads", Some(json!(3)), "KeyValue");
    push("tie_word_embeddings", Some(json!("yes")), "KeyValue");
    push("quantization_config", Some(json!({ "bits": 4 })), "Unsupported");
    push("final_logit_softcapping", Some(json!(30.0)), "Unsupported");
    push("mlp_bias", Some(json!(true)), "Unsupported");
    push("hidden_act", Some(json!("relu")), "KeyValue");
    push("hidden_size", Some(json!(128)), "TensorShape|KeyValue");
    for vocab in [json!(9_999_999), json!(7), json!("all")] {
        push("vocab_size", Some(vocab), "KeyValue { key: \"vocab_size of config.json\"");
    }
    push("num_hidden_layers", Some(json!(3)), "MissingTensor");
    push("num_hidden_layers", Some(json!(1)), "UnknownTensor");
}

fn tensors(parts: &Parts, cases: &mut Vec<Hostile>) {
    for (number, weight) in parts.weights.iter().enumerate() {
        let mut push = |what: &str, weights: &[Weight], expected: &str| {
            let bytes = safetensors(weights, Dtype::F32);
            let what = format!("with {} {what}", weight.name);
            cases.push(parts.with("model.safetensors", Some(bytes), &what, expected));
        };
        let tied = parts.config["tie_word_embeddings"] == json!(true);
        let mut wrong = parts.weights.clone();
        wrong.remove(number);
        // Without its head a model that has one of its own looks as if the table served.
        if weight.name != "lm_head.weight" {
            push("missing", &wrong, "MissingTensor");
        }
        let mut wrong = parts.weights.clone();
        wrong[number].name.push('x');
        if !(tied && weight.name == "lm_head.weight") {
            push("renamed", &wrong, "MissingTensor|UnknownTensor");
        }
        let mut wrong = parts.weights.clone();
        wrong[number].shape.insert(0, 1);
        push("of another shape", &wrong, "TensorShape");
    }
}

/// A safetensors file of this header text and so many bytes of data.
fn raw(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn headers(parts: &Parts, cases: &mut Vec<Hostile>) {
    let file = "model.safetensors";
    let whole = safetensors(&parts.weights, Dtype::F32);
    let mut push = |bytes: Vec<u8>, what: &str, expected: &str| {
        cases.push(parts.with(file, Some(bytes), what, expected));
    };
    let length = whole.len();
    for part in 0..60 {
        let cut = length * part / 60;
        push(whole[..cut].to_vec(), &format!("cut to {cut} bytes"), "Truncated|TensorOutside|Json");
    }
    push([whole.clone(), vec![0; 8]].concat(), "with bytes behind", "Json");
    push(u64::MAX.to_le_bytes().to_vec(), "with a header of 2^64 - 1 bytes", "OutOfRange");
    push((1u64 << 40).to_le_bytes().to_vec(), "with a header of 2^40 bytes", "OutOfRange");
    push(b"PK\x03\x04xxxxxxxx".to_vec(), "that is a zip archive", "Json");
    push(b"\x80\x02}q\0\0\0\0".to_vec(), "that is a pickle", "Json");
    let one = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"a":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    let texts: [(String, &str); 23] = [
        (String::new(), "Json"),
        ("{".to_owned(), "Json"),
        ("[]".to_owned(), "Json"),
        ("{}".to_owned(), "Json"),
        ("nul".to_owned(), "Json"),
        ("[".repeat(100_000), "Json"),
        (r#"{"a":"#.repeat(20_000), "Json"),
        (r#"{"a":{"b":"c"}}"#.to_owned(), "Json"),
        (r#"{"a":1}"#.to_owned(), "Json"),
        (r#"{"a":["F32",[4],[0,16]]}"#.to_owned(), "Json"),
        (one("\"F32\"", "[4]", "[0,12]"), "TensorDims"),
        (one("\"F32\"", "[4]", "[16,0]"), "TensorDims"),
        (one("\"F32\"", "[4]", "[8,24]"), "TensorOutside|Json"),
        (one("\"F32\"", "[4]", "[0]"), "Json"),
        (one("\"F32\"", "[4]", "[-1,15]"), "Json"),
        (one("\"F32\"", "[0]", "[0,0]"), "TensorDims"),
        (one("\"F32\"", "[]", "[0,4]"), "TensorDims"),
        (one("\"F32\"", "[1,1,1,1,4]", "[0,16]"), "TensorDims"),
        (one("\"F32\"", "[4294967296,4294967296]", "[0,16]"), "TensorDims"),
        (one("\"F32\"", "[18446744073709551615,2]", "[0,16]"), "TensorDims"),
        (one("\"I64\"", "[2]", "[0,16]"), "Unsupported"),
        (one("\"F8_E4M3\"", "[16]", "[0,16]"), "Unsupported"),
        (one("7", "[4]", "[0,16]"), "Json"),
    ];
    for (text, expected) in texts {
        push(raw(&text, 16), &format!("with the header {text:.60}"), expected);
    }
    let two = |a: &str, b: &str, names: [&str; 2]| {
        let entry = |offsets| format!(r#"{{"dtype":"F32","shape":[2],"data_offsets":{offsets}}}"#);
        format!(r#"{{"{}":{},"{}":{}}}"#, names[0], entry(a), names[1], entry(b))
    };
    push(raw(&two("[0,8]", "[4,12]", ["a", "b"]), 16), "with an overlap", "TensorOverlap");
    push(raw(&two("[0,8]", "[0,8]", ["a", "b"]), 16), "with the same bytes", "TensorOverlap");
    push(raw(&two("[0,8]", "[12,20]", ["a", "b"]), 20), "with a gap", "Json");
    push(raw(&two("[0,8]", "[8,16]", ["a", "a"]), 16), "with a name twice", "Json");
}

fn indices(parts: &Parts, cases: &mut Vec<Hostile>) {
    let name = parts.weights[0].name.clone();
    let mut push = |text: String, what: &str, expected: &str| {
        cases.push(parts.with(INDEX, Some(text.into_bytes()), what, expected));
    };
    let bad = [
        "../model.safetensors",
        "/etc/passwd.safetensors",
        "a/model.safetensors",
        "a\\model.safetensors",
        "..",
        ".",
        "",
        "C:model.safetensors",
        "pytorch_model.bin",
        "config.json",
        "model.safetensors\0",
    ];
    for shard in bad {
        let text = json!({ "weight_map": { "a": shard } }).to_string();
        push(text, &format!("that names {shard:?}"), "Json");
    }
    let missing = json!({ "weight_map": { "a": "x.safetensors" } }).to_string();
    push(missing, "that names a missing file", "NotFound");
    let other = json!({ "weight_map": { "a": "model.safetensors" } }).to_string();
    push(other, "that names a missing tensor", "Json");
    let one = json!({ "weight_map": { name: "model.safetensors" } }).to_string();
    push(one, "that leaves tensors out", "Json");
    for text in
        ["", "{}", "[]", "{\"weight_map\":1}", "{\"weight_map\":{\"a\":1}}", "{\"weight_map\":{}}"]
    {
        push(text.to_owned(), &format!("that is {text}"), "Json");
    }
    let twice = r#"{"weight_map":{"a":"model.safetensors","a":"model.safetensors"}}"#;
    push(twice.to_owned(), "with a tensor twice", "Json");
    push("[".repeat(100_000), "that nests without end", "Json");
}

fn tokenizers(parts: &Parts, cases: &mut Vec<Hostile>) {
    let file = "tokenizer.json";
    let mut push = |path: &str, value: Value, expected: &str| {
        let mut tokenizer = parts.tokenizer.clone();
        if let Some(place) = tokenizer.pointer_mut(path) {
            *place = value.clone();
        }
        let what = format!("with {path} = {value:.60}");
        let bytes = Some(tokenizer.to_string().into_bytes());
        cases.push(parts.with(file, bytes, &what, expected));
    };
    for value in [json!(null), json!(1), json!([]), json!("x")] {
        push("/model", value.clone(), "Json");
        push("/model/vocab", value, "Json");
    }
    for value in [json!(null), json!(1), json!({}), json!("x"), json!([1]), json!([["a"]])] {
        push("/model/merges", value, "Json");
    }
    push("/model/type", json!("Unigram"), "Unsupported");
    push("/model/type", json!("WordPiece"), "Unsupported");
    push("/model/ignore_merges", json!(true), "Unsupported");
    push("/model/merges", json!(["ab"]), "Merge");
    push("/model/merges", json!([["a", "☃"]]), "Merge");
    push("/model/vocab", json!({ "a": 1, "b": 1 }), "Json");
    push("/model/vocab", json!({ "a": -1 }), "Json");
    push("/model/vocab", json!({ "a": 4_000_000_000_u64 }), "Json");
    push("/model/vocab", json!({ "a": u64::MAX }), "Json");
    push("/model/vocab", json!({ "a": 0.5 }), "Json");
    push("/added_tokens", json!([{ "id": u64::MAX, "content": "x", "special": true }]), "Json");
    push("/added_tokens", json!([{ "id": 5, "content": "x", "special": true }]), "Json");
    // Not the next free id: others would give it that one.
    push("/added_tokens", json!([{ "id": 999, "content": "x", "special": true }]), "Json");
    push("/added_tokens", json!([{ "content": "x" }]), "Json");
    push("/added_tokens", json!({}), "Json");
    push("/normalizer", json!({ "type": "Lowercase" }), "Unsupported");
    push("/normalizer", json!({ "type": "NFKC" }), "Unsupported");
    push("/normalizer", json!({ "type": "Precompiled" }), "Unsupported");
    push("/pre_tokenizer", json!(null), "Unsupported");
    push("/pre_tokenizer", json!({ "type": "Whitespace" }), "Unsupported");
    push("/pre_tokenizer/pretokenizers", json!([]), "Unsupported");
    for regex in ["(a+)+$", "((a*)*)*b", "(?=x)*", "[", ""] {
        let step = json!([{ "type": "Split", "pattern": { "Regex": regex } }]);
        push("/pre_tokenizer/pretokenizers", step, "Unsupported");
    }
    push("/model/byte_fallback", json!(true), "Unsupported");
}

/// The text files as a whole.
fn texts(parts: &Parts, cases: &mut Vec<Hostile>) {
    let deep = "{\"a\":".repeat(100_000);
    let texts: [&[u8]; 8] =
        [b"", b"{", b"null", b"[]", b"\"x\"", b"\xff\xfe", b"{}x", deep.as_bytes()];
    for file in ["config.json", "tokenizer.json"] {
        for text in texts {
            let what = format!("that is {:.40}", String::from_utf8_lossy(text));
            cases.push(parts.with(file, Some(text.to_vec()), &what, "Json"));
        }
        let gone = if file == "config.json" { "NotAFile" } else { "NotFound" };
        cases.push(parts.with(file, None, "missing", gone));
        let large = vec![b' '; if file == "config.json" { 5 << 20 } else { 1 << 20 }];
        cases.push(parts.with(file, Some(large), "of blanks", "Json"));
    }
    cases.push(parts.with("model.safetensors", None, "missing", "NotFound"));
    let mut pickled = parts.with("model.safetensors", None, "missing beside a pickle", "Json");
    pickled.files.push(("pytorch_model.bin".to_owned(), b"PK\x03\x04".to_vec()));
    cases.push(pickled);
    for text in ["", "{", "[]", "7"] {
        let bytes = text.as_bytes().to_vec();
        let what = format!("that is {text}");
        cases.push(parts.with("tokenizer_config.json", Some(bytes), &what, "Json"));
    }
    let bad = json!({ "chat_template": "{% for %}" }).to_string().into_bytes();
    cases.push(parts.with("tokenizer_config.json", Some(bad), "with a bad template", "Template"));
}
