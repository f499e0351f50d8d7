//! What the fuzz targets begin with.

use super::{folders, folders::sound_index, ggufs, small, sound_folder};
use crate::gguf::TinyModel;
use std::{collections::BTreeMap, fs, io};

/// The target that reads a file of a model, by its name there.
const TARGETS: [(&str, &str); 5] = [
    ("model.gguf", "gguf"),
    ("config.json", "config_json"),
    ("tokenizer.json", "tokenizer_json"),
    ("model.safetensors", "safetensors"),
    ("model.safetensors.index.json", "index_json"),
];
const TEXTS: [&str; 3] =
    ["Hello, wörld! 12 345\n\n  x", "<|im_start|>a<|im_end|>", "😀漢\u{200d}\r\n"];
/// The fuzzer reads them all before it begins.
const MOST: usize = 120;

/// Inputs of each fuzz target, a sound one first, then malformed ones; at most 120.
///
/// # Errors
/// If the chat templates of `tests/vectors` cannot be read.
pub fn corpus() -> io::Result<BTreeMap<&'static str, Vec<Vec<u8>>>> {
    let mut corpus = BTreeMap::<_, Vec<Vec<u8>>>::new();
    let gguf = small(TinyModel::llama()).gguf().map_err(io::Error::other)?.to_bytes();
    let sound = [sound_folder(), vec![sound_index(), ("model.gguf".to_owned(), gguf)]].concat();
    let malformed = ggufs().into_iter().chain(folders()).flat_map(|case| case.files);
    for (name, bytes) in sound.into_iter().chain(malformed) {
        if let Some((_, target)) = TARGETS.iter().find(|(file, _)| *file == name) {
            corpus.entry(*target).or_default().push(bytes);
        }
    }
    corpus.insert("text", TEXTS.map(|text| text.as_bytes().to_vec()).into());
    corpus.insert("template", templates()?);
    for inputs in corpus.values_mut() {
        let apart = inputs.len().div_ceil(MOST).max(1);
        *inputs = std::mem::take(inputs).into_iter().step_by(apart).collect();
    }
    Ok(corpus)
}

fn templates() -> io::Result<Vec<Vec<u8>>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/templates.json");
    let vectors: serde_json::Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let templates = vectors["templates"].as_object().into_iter().flat_map(|named| named.values());
    Ok(templates.filter_map(|text| text.as_str()).map(|text| text.as_bytes().to_vec()).collect())
}
