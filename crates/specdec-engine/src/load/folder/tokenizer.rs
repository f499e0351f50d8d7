//! `tokenizer.json` as the metadata of a GGUF file: byte-level BPE, or `SentencePiece`'s BPE with
//! bytes for what has no token. What a file asks for beyond these is refused, not guessed.

use super::{
    config::Entries,
    header::damaged,
    json::{Pairs, Tree},
};
use crate::load::{LoadError, gguf::Value};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::HashMap;

pub(super) const FILE: &str = "tokenizer.json";

/// Token types of GGUF.
const NORMAL: i64 = 1;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;
const UNUSED: i64 = 5;
const BYTE: i64 = 6;

/// Most ids; the largest vocabularies have some 300,000.
const MAX_IDS: usize = 1 << 22;

#[derive(Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    added_tokens: Vec<Added>,
    #[serde(default)]
    normalizer: Tree,
    #[serde(default)]
    pre_tokenizer: Tree,
    #[serde(default)]
    post_processor: Tree,
    model: Model,
}

#[derive(Deserialize)]
struct Added {
    id: usize,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    vocab: Pairs<usize, MAX_IDS>,
    merges: Vec<Merge>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    #[serde(default)]
    unk_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Pair([String; 2]),
    Text(String),
}

impl Merge {
    fn sides(&self) -> Option<(&str, &str)> {
        match self {
            Self::Pair([left, right]) => Some((left, right)),
            Self::Text(text) => text.split_once(' '),
        }
    }
}

/// The word patterns that we have code for, by a part that no other has.
const PATTERNS: [(&str, &str); 3] = [
    (r"\p{N}{1,3}", "llama-bpe"),
    (r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", "qwen2"),
    (r"\s?\p{L}+|\s?\p{N}+|\s?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", "gpt-2"),
];

/// The metadata of the tokenizer; `begin` and `end` as other files have them.
pub(super) fn read(
    document: &Document,
    begin: Option<u32>,
    end: Option<u32>,
) -> Result<Entries, LoadError> {
    let model = &document.model;
    if model.kind.as_deref().is_some_and(|kind| kind != "BPE") {
        return Err(unsupported("model.type", model.kind.as_deref().unwrap_or_default()));
    }
    let pieces = model.byte_fallback;
    let (tokens, mut kinds) = tokens(document)?;
    if pieces {
        for (token, kind) in tokens.iter().zip(&mut kinds) {
            let digits = token.strip_prefix("<0x").and_then(|text| text.strip_suffix('>'));
            if *kind == NORMAL && digits.is_some_and(|digits| digits.len() == 2) {
                *kind = BYTE;
            }
        }
    }
    let mut entries: Entries = Vec::new();
    let mut set = |name: &str, value| entries.push((format!("tokenizer.ggml.{name}"), value));
    let text = |text: &str| Value::String(text.as_bytes().into());
    set("model", text(if pieces { "llama" } else { "gpt2" }));
    if pieces {
        set("scores", Value::floats(&scores(model, &tokens)?));
        set("add_space_prefix", Value::Bool(blank_first(document)?));
        let unknown = model.unk_token.as_ref();
        let unknown = unknown.and_then(|name| tokens.iter().position(|token| token == name));
        if let Some(id) = unknown {
            set("unknown_token_id", Value::Unsigned(id as u64));
        }
    } else {
        let pre = word_pattern(document)?;
        if model.ignore_merges != (pre == "llama-bpe") {
            return Err(unsupported("ignore_merges", &model.ignore_merges.to_string()));
        }
        set("pre", text(pre));
        set("merges", Value::strings(merges(model)?.iter().map(String::as_bytes)));
    }
    set("tokens", Value::strings(tokens.iter().map(String::as_bytes)));
    set("token_type", Value::integers(&kinds));
    let post = document.post_processor.0.to_string();
    let named = begin.and_then(|id| tokens.get(id as usize)).filter(|name| !name.is_empty());
    let adds = named.is_some_and(|name| post.contains(&Json::from(name.as_str()).to_string()));
    set("add_bos_token", Value::Bool(adds));
    for (name, id) in [("bos_token_id", begin), ("eos_token_id", end)] {
        if let Some(id) = id {
            set(name, Value::Unsigned(id.into()));
        }
    }
    Ok(entries)
}

fn unsupported(field: &str, found: &str) -> LoadError {
    let found = found.chars().take(200).collect();
    LoadError::Unsupported { field: format!("{field} of {FILE}"), found }
}

/// Texts and kinds by id; ids that nobody has are unused.
fn tokens(document: &Document) -> Result<(Vec<String>, Vec<i64>), LoadError> {
    check_added(document)?;
    let vocab = document.model.vocab.0.iter().map(|(text, id)| (*id, text, NORMAL));
    let added = document.added_tokens.iter().map(|token| {
        (token.id, &token.content, if token.special { CONTROL } else { USER_DEFINED })
    });
    let all = vocab.chain(added);
    let count = all.clone().map(|(id, ..)| id.saturating_add(1)).max().unwrap_or(0);
    let named = document.model.vocab.0.len() + document.added_tokens.len();
    if count > MAX_IDS || count / 2 > named + 4096 {
        return Err(damaged(FILE, format!("ids up to {count} for {named} tokens")));
    }
    let (mut texts, mut kinds) = (vec![String::new(); count], vec![UNUSED; count]);
    for (id, text, kind) in all {
        // An added token may stand in the vocabulary too, as the same text.
        if kinds[id] != UNUSED && (kinds[id] != NORMAL || kind == NORMAL || texts[id] != *text) {
            return Err(damaged(FILE, format!("two tokens have the id {id}")));
        }
        texts[id].clone_from(text);
        kinds[id] = kind;
    }
    Ok((texts, kinds))
}

/// The tokenizers library passes over the id of an added token: it has that of its text in the
/// vocabulary, or the next free one behind it. A file that says otherwise would get other ids there.
fn check_added(document: &Document) -> Result<(), LoadError> {
    let vocab = &document.model.vocab.0;
    let ids: HashMap<&str, usize> = vocab.iter().map(|(text, id)| (text.as_str(), *id)).collect();
    let mut next = vocab.len();
    for token in &document.added_tokens {
        let id = *ids.get(token.content.as_str()).unwrap_or(&next);
        if token.id != id {
            let reason =
                format!("the added token {:?} has the id {}, not {id}", token.content, token.id);
            return Err(damaged(FILE, reason));
        }
        next = next.max(id + 1);
    }
    Ok(())
}

fn merges(model: &Model) -> Result<Vec<String>, LoadError> {
    let text = |(rank, merge): (usize, &Merge)| match merge.sides() {
        Some((left, right)) => Ok(format!("{left} {right}")),
        None => Err(LoadError::Merge { rank: rank as u32, reason: "is no pair of texts" }),
    };
    model.merges.iter().enumerate().map(text).collect()
}

/// The rank of the first merge that makes a token, as a score: higher is earlier.
fn scores(model: &Model, tokens: &[String]) -> Result<Vec<f32>, LoadError> {
    let ids: HashMap<&str, usize> =
        tokens.iter().enumerate().map(|(id, token)| (token.as_str(), id)).collect();
    let mut scores = vec![-1e9; tokens.len()];
    let mut product = String::new();
    for (rank, merge) in model.merges.iter().enumerate().rev() {
        let wrong = |reason| LoadError::Merge { rank: rank as u32, reason };
        let (left, right) = merge.sides().ok_or_else(|| wrong("is no pair of texts"))?;
        product.clear();
        product.extend([left, right]);
        let id = *ids.get(product.as_str()).ok_or_else(|| wrong("names an unknown token"))?;
        scores[id] = -(rank as f32);
    }
    Ok(scores)
}

/// Whether the normaliser or the pre-tokeniser puts a blank in front; both may only write blanks
/// as `▁`.
fn blank_first(document: &Document) -> Result<bool, LoadError> {
    let mut first = false;
    for step in steps(&document.normalizer.0, "normalizers") {
        match kind(step) {
            "Prepend" if step["prepend"] == "▁" => first = true,
            "Replace" if step["pattern"]["String"] == " " && step["content"] == "▁" => {}
            _ => return Err(unsupported("normalizer", &step.to_string())),
        }
    }
    for step in steps(&document.pre_tokenizer.0, "pretokenizers") {
        match (kind(step), step["prepend_scheme"].as_str()) {
            ("Metaspace", Some("never")) => {}
            ("Metaspace", Some("always" | "first")) => first = true,
            ("Split", _) if step["pattern"]["String"] == " " => {}
            _ => return Err(unsupported("pre_tokenizer", &step.to_string())),
        }
    }
    Ok(first)
}

/// The name of the word pattern. Unicode normalisation is not done here: texts that it changes
/// would get other ids, so only the composing one, which leaves almost all text alone, is let pass.
fn word_pattern(document: &Document) -> Result<&'static str, LoadError> {
    if let Some(step) =
        steps(&document.normalizer.0, "normalizers").find(|step| kind(step) != "NFC")
    {
        return Err(unsupported("normalizer", &step.to_string()));
    }
    let (mut digits, mut pattern, mut bytes) = (false, None, false);
    for step in steps(&document.pre_tokenizer.0, "pretokenizers") {
        match kind(step) {
            "Digits" if step["individual_digits"] == true => digits = true,
            "Split" => pattern = step["pattern"]["Regex"].as_str().or(Some("")),
            "ByteLevel" => {
                bytes = step["add_prefix_space"] == false;
                if step["use_regex"] != false {
                    pattern = Some(PATTERNS[2].0);
                }
            }
            _ => return Err(unsupported("pre_tokenizer", &step.to_string())),
        }
    }
    let known = PATTERNS.iter().find(|(part, _)| pattern.is_some_and(|p| p.contains(part)));
    match (known, digits, bytes) {
        (Some((_, "gpt-2")), true, true) => Ok("smollm"),
        (Some((_, name)), false, true) => Ok(name),
        _ => Err(unsupported("pre_tokenizer", &document.pre_tokenizer.0.to_string())),
    }
}

fn kind(step: &Json) -> &str {
    step["type"].as_str().unwrap_or_default()
}

/// The steps of a sequence, or the one step there is.
fn steps<'j>(json: &'j Json, name: &str) -> impl Iterator<Item = &'j Json> {
    let list = json[name].as_array().filter(|_| kind(json) == "Sequence");
    let one = (list.is_none() && !json.is_null()).then_some(json);
    list.into_iter().flatten().chain(one)
}
