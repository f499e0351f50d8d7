//! The oracle's vectors: `tests/vectors/tiny_*.json` and `greedy_*.json`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, de::DeserializeOwned};

use super::TinyModel;

/// A tiny model, a prompt, token trees behind it, and the logits of transformers in f32.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What the case is about.
    pub name: String,
    /// The model.
    pub recipe: TinyModel,
    /// Token ids.
    pub prompt: Vec<u32>,
    /// Positions of the prompt whose logits are given.
    pub logits_at: Vec<usize>,
    /// One row for every entry of `logits_at`.
    pub prompt_logits: Vec<Vec<f32>>,
    /// Trees, each behind the prompt and what the rounds before it kept.
    pub rounds: Vec<Round>,
}

/// One token tree and what is kept of it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Token ids of the nodes, parents before children.
    pub tokens: Vec<u32>,
    /// The parent of every node, -1 where that is the context.
    pub parents: Vec<i32>,
    /// The path of nodes, from a root of the tree, that the context keeps.
    pub commit: Vec<usize>,
    /// Logits after every node.
    pub logits: Vec<Vec<f32>>,
}

/// A prompt and its greedy continuation by llama.cpp on a real model.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Greedy {
    /// The text.
    pub prompt: String,
    /// Its token ids, specials written in the text being specials.
    pub prompt_token_ids: Vec<u32>,
    /// The tokens that follow.
    pub token_ids: Vec<u32>,
    /// Lead of each of these over the second best, in logits.
    pub gaps: Vec<f32>,
}

/// Reads `tests/vectors/NAME.json`.
///
/// # Panics
/// When there is no such file or it holds something else: only tests call this.
pub fn read_vectors<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors")
}
