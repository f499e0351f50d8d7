//! Large files, most of which a reader must hold: what they say takes little room on disk, and much
//! where each item is given a box of its own.

use super::{Hostile, folders::Parts, small};
use crate::gguf::{Gguf, TinyModel, Value};
use serde_json::{Value as Json, json};

const MEBI: usize = 1 << 20;

/// Large malformed files.
///
/// # Panics
/// Never: the recipes are right.
pub fn large() -> Vec<Hostile> {
    let model = small(TinyModel::llama());
    let file = model.gguf().unwrap_or_else(|error| panic!("{error}"));
    let mut cases = ggufs(&file);
    cases.extend(folders(&Parts::of(&model)));
    cases
}

/// GGUF files: what is wrong comes behind what is large.
fn ggufs(file: &Gguf) -> Vec<Hostile> {
    let strings = |count, text: fn(usize) -> String| {
        Value::Array((0..count).map(|number| Value::from(&*text(number))).collect())
    };
    let with = |what: &str, key: &str, value: Value, expected: &str| {
        let mut wrong = file.clone();
        wrong.set(key, value);
        wrong.set("llama.block_count", Value::U32(0));
        super::ggufs::case(format!("large: {what}"), wrong.to_bytes(), expected.to_owned())
    };
    let bytes = Value::Array(vec![Value::U8(7); 4 * MEBI]);
    let flags = Value::Array(vec![Value::Bool(true); 4 * MEBI]);
    let layers = "KeyValue { key: \"llama.block_count\"";
    let mut cases = vec![
        with("4 Mi bytes", "x", bytes, layers),
        with("4 Mi booleans", "x", flags, layers),
        with("2 Mi empty strings", "x", strings(2 * MEBI, |_| String::new()), layers),
        with(
            "256 Ki tokens",
            "tokenizer.ggml.tokens",
            strings(MEBI / 4, |n| format!("<{n}>")),
            "KeyValue|Merge|Tokenizer",
        ),
        with(
            "a token of 8 MiB",
            "tokenizer.ggml.tokens",
            strings(1, |_| "a".repeat(8 * MEBI)),
            "KeyValue|Merge|Tokenizer",
        ),
        with(
            "256 Ki merges",
            "tokenizer.ggml.merges",
            strings(MEBI / 4, |n| format!("{n} {n}")),
            "Merge",
        ),
    ];
    for (what, piece) in [
        ("text", "a"),
        ("outputs", "{{a}}"),
        ("tests", "{% if a %}"),
        ("brackets", "{{[[[]]]}}"),
        ("calls", "{{a.b(c)|d}}"),
    ] {
        let template = Value::from(&*piece.repeat(2 * MEBI / piece.len()));
        cases.push(with(
            &format!("a template of {what}"),
            "tokenizer.chat_template",
            template,
            "Template|KeyValue",
        ));
    }
    cases
}

/// Folders: JSON of many small values, and of many names.
fn folders(parts: &Parts) -> Vec<Hostile> {
    let names = |count: usize, value: &dyn Fn(usize) -> Json| {
        Json::Object((0..count).map(|n| (format!("n{n}"), value(n))).collect())
    };
    let mut cases = Vec::new();
    for (file, key) in [
        ("config.json", "x"),
        ("tokenizer.json", "normalizer"),
        ("tokenizer_config.json", "chat_template"),
        ("model.safetensors.index.json", "weight_map"),
    ] {
        // A file that is too long, and the longest of which a tree is made.
        for bytes in [3 * MEBI, MEBI / 2 - 100] {
            for value in ["0", "[]", "{}", "{\"\":0}"] {
                let many = format!("{value},").repeat(bytes / (value.len() + 1));
                let text = format!("{{\"{key}\":[{many}0]}}").into_bytes();
                let what = format!("of {bytes} bytes of {value}");
                cases.push(parts.with(file, Some(text), &what, "Json|MissingKey|Unsupported"));
            }
        }
    }
    let vocab = names(MEBI / 2, &|n| json!(n));
    let tokenizer = json!({ "model": { "type": "BPE", "vocab": vocab, "merges": [] } }).to_string();
    cases.push(parts.with(
        "tokenizer.json",
        Some(tokenizer.into_bytes()),
        "of half a million tokens",
        "Json|Unsupported|MissingKey",
    ));
    let index =
        json!({ "weight_map": names(MEBI / 2, &|_| json!("model.safetensors")) }).to_string();
    cases.push(parts.with(
        "model.safetensors.index.json",
        Some(index.into_bytes()),
        "of half a million tensors",
        "Json",
    ));
    let tensor = json!({ "dtype": "F32", "shape": [1], "data_offsets": [0, 4] });
    for (what, header) in [
        ("tensors", names(MEBI / 8, &|_| tensor.clone())),
        ("remarks", json!({ "__metadata__": names(MEBI / 2, &|_| json!("x")) })),
    ] {
        let text = header.to_string();
        let bytes = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
        cases.push(parts.with(
            "model.safetensors",
            Some(bytes),
            &format!("of many {what}"),
            "Json|MissingTensor",
        ));
    }
    cases
}
