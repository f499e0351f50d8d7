//! A folder as transformers writes it: `config.json`, `tokenizer.json`, weights in safetensors.
//!
//! All of it is said again in the words of a GGUF header, and goes through the same checks: what a
//! model is, which tensors it must have, what a tokenizer is. Only the names differ.

mod config;
mod header;
mod json;
mod names;
mod settings;
mod tokenizer;

use super::{
    LoadError,
    config::EMBEDDING,
    gguf::{Gguf, Header, TensorInfo, Value},
};
use config::Entries;
use header::damaged;
use json::Pairs;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use std::{collections::HashMap, fs::File, path::Path};

/// Limits of files in bytes.
const SMALL: u64 = 4 << 20;
const TOKENIZER: u64 = 128 << 20;
const INDEX: u64 = 32 << 20;

/// Most files of weights.
const MAX_SHARDS: usize = 1024;

const SINGLE: &str = "model.safetensors";
const INDEX_FILE: &str = "model.safetensors.index.json";

#[derive(Deserialize)]
struct Index {
    weight_map: Pairs<String, { header::MAX_TENSORS }>,
}

/// Opens a model folder.
///
/// # Errors
/// A file that is missing or says what it may not, with its name; then whatever is wrong with the
/// model, as for a GGUF file.
pub(super) fn open(folder: &Path) -> Result<Gguf, LoadError> {
    let needed = |name: &str| LoadError::NotFound { path: folder.join(name) };
    let no_model = || LoadError::NotAFile { path: folder.to_path_buf() };
    let json: Map<String, Json> =
        json::read(folder, "config.json", json::TREE as u64)?.ok_or_else(no_model)?;
    let config = config::read(&json)?;
    let document: tokenizer::Document =
        json::read(folder, tokenizer::FILE, TOKENIZER)?.ok_or_else(|| needed(tokenizer::FILE))?;
    let settings: settings::Settings =
        json::read(folder, "tokenizer_config.json", SMALL)?.unwrap_or_default();
    let mut entries = config.entries;
    entries.extend(tokenizer::read(&document, config.bos, config.eos)?);
    entries.extend(template(folder, settings)?);
    let weights = weights(folder, config.arch, config.tied)?;
    check_vocab(config.vocab, &weights.tensors)?;
    let header = Header::from_parts(entries, weights.tensors)?;
    Ok(Gguf::from_parts(folder, weights.files, weights.homes, header))
}

/// The chat template: a file of its own, or a setting of the tokenizer.
fn template(folder: &Path, settings: settings::Settings) -> Result<Entries, LoadError> {
    let own = match json::open(folder, "chat_template.jinja")? {
        Some(file) => {
            let text = std::io::read_to_string(std::io::Read::take(file, SMALL));
            let path = folder.join("chat_template.jinja");
            Some(text.map_err(|source| LoadError::Open { path, source })?)
        }
        None => settings.chat_template.0,
    };
    let entry = |text: String| {
        ("tokenizer.chat_template".to_owned(), Value::String(text.as_bytes().into()))
    };
    Ok(own.map(entry).into_iter().collect())
}

/// The configuration and the weights speak of one vocabulary.
fn check_vocab(said: Option<u64>, tensors: &[TensorInfo]) -> Result<(), LoadError> {
    let table = tensors.iter().find(|tensor| tensor.name == EMBEDDING);
    match (said, table.map(TensorInfo::rows)) {
        (Some(said), Some(rows)) if said != rows => Err(LoadError::KeyValue {
            key: "vocab_size of config.json".to_owned(),
            found: said.to_string(),
            expected: format!("the {rows} rows of the embedding table"),
        }),
        _ => Ok(()),
    }
}

/// The tensors of all files under our names.
#[derive(Default)]
struct Weights {
    tensors: Vec<TensorInfo>,
    files: Vec<File>,
    /// File of each tensor.
    homes: Vec<usize>,
}

fn weights(folder: &Path, arch: &str, tied: bool) -> Result<Weights, LoadError> {
    let index: Option<Index> = json::read(folder, INDEX_FILE, INDEX)?;
    let names = match &index {
        None => vec![SINGLE.to_owned()],
        Some(index) => shard_names(index)?,
    };
    let mut weights = Weights::default();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (home, name) in names.iter().enumerate() {
        let file = json::open(folder, name)?.ok_or_else(|| missing_weights(folder, name))?;
        for mut tensor in header::read(&file, name)? {
            if known.insert(tensor.name.clone(), home).is_some() {
                return Err(damaged(name, format!("{:?} is in another file too", tensor.name)));
            }
            let ours = names::ours(&tensor.name, arch);
            // A copy of a tied head, or what is computed here, is left where it is.
            if names::is_buffer(&tensor.name) || (tied && ours == "output.weight") {
                continue;
            }
            tensor.name = ours;
            weights.tensors.push(tensor);
            weights.homes.push(home);
        }
        weights.files.push(file);
    }
    if let Some(index) = &index {
        check_index(index, &names, &known)?;
    }
    Ok(weights)
}

fn shard_names(index: &Index) -> Result<Vec<String>, LoadError> {
    let mut names: Vec<&String> = index.weight_map.0.iter().map(|(_, file)| file).collect();
    names.sort_unstable();
    names.dedup();
    let fine = |name: &&String| name.ends_with(".safetensors");
    if let Some(name) = names.iter().find(|name| !fine(name)) {
        return Err(damaged(INDEX_FILE, format!("{name:?} is no safetensors file")));
    }
    if names.is_empty() || names.len() > MAX_SHARDS {
        return Err(damaged(INDEX_FILE, format!("{} files, expected 1 to 1024", names.len())));
    }
    Ok(names.into_iter().cloned().collect())
}

/// Every tensor of the index is where it says, and there are no others.
fn check_index(
    index: &Index,
    files: &[String],
    home: &HashMap<String, usize>,
) -> Result<(), LoadError> {
    for (name, file) in &index.weight_map.0 {
        if home.get(name).is_none_or(|&number| files[number] != *file) {
            return Err(damaged(INDEX_FILE, format!("{name:?} is not in {file}")));
        }
    }
    // Names are unique on both sides, so as many as all are all.
    if home.len() > index.weight_map.0.len() {
        let message =
            format!("{} tensors are in no file's list", home.len() - index.weight_map.0.len());
        return Err(damaged(INDEX_FILE, message));
    }
    Ok(())
}

/// Says what to do if there are weights of another kind.
fn missing_weights(folder: &Path, name: &str) -> LoadError {
    let pickled = folder.join("pytorch_model.bin").exists();
    if pickled {
        let what = "only pytorch_model.bin is there, a Python pickle, which can run code; save the \
                    model with safetensors";
        return damaged(name, what.to_owned());
    }
    LoadError::NotFound { path: folder.join(name) }
}
