//! Files with a vocabulary and nothing else.

use specdec_engine::load::{LoadError, Tokenizer, gguf::Header};
use specdec_testkit::gguf::{self as kit, Value};

pub(crate) fn strings(items: impl IntoIterator<Item = String>) -> Value {
    Value::Array(items.into_iter().map(Value::String).collect())
}

/// A file with this vocabulary and no tensors; ids that are left out are unused.
pub(crate) fn file(
    pre: &str,
    size: usize,
    tokens: &[(usize, String, i32)],
    merges: &[String],
) -> kit::Gguf {
    let mut texts: Vec<String> = (0..size).map(|id| format!("[unused {id}]")).collect();
    let mut kinds = vec![5; size];
    for (id, text, kind) in tokens {
        texts[*id].clone_from(text);
        kinds[*id] = *kind;
    }
    let mut file = kit::Gguf::default();
    file.set("tokenizer.ggml.model", "gpt2");
    file.set("tokenizer.ggml.pre", pre);
    file.set("tokenizer.ggml.tokens", strings(texts));
    file.set(
        "tokenizer.ggml.token_type",
        Value::Array(kinds.into_iter().map(Value::I32).collect()),
    );
    file.set("tokenizer.ggml.merges", strings(merges.iter().cloned()));
    file
}

pub(crate) fn tokenizer_of(file: &kit::Gguf) -> Result<Tokenizer, LoadError> {
    let bytes = file.to_bytes();
    Tokenizer::from_gguf(&Header::read(bytes.as_slice())?)
}

/// Byte tokens 0 to 255 in the byte alphabet, then `more` of the given kinds.
pub(crate) fn small(pre: &str, more: &[(&str, i32)], merges: &[&str]) -> kit::Gguf {
    let vocabulary = kit::Vocabulary::new(kit::Arch::Qwen2, kit::Vocabulary::LEAST);
    let bytes = vocabulary.tokens[..kit::BYTES].iter().map(|text| (text.as_str(), 1));
    let tokens: Vec<(usize, String, i32)> = bytes
        .chain(more.iter().copied())
        .enumerate()
        .map(|(id, (text, kind))| (id, text.to_owned(), kind))
        .collect();
    let merges: Vec<String> = merges.iter().map(|&merge| merge.to_owned()).collect();
    file(pre, tokens.len(), &tokens, &merges)
}
