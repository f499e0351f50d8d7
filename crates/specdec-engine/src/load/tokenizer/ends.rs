//! The tokens after which a model has nothing more to say.
//!
//! Files name one such token (`eos_token_id`), models use several: a chat model ends its turn
//! with one, its training texts ended with another. So those known by name are added (the list is
//! llama.cpp's), and count as control tokens even where the file calls them text; but not where
//! merges make them: the `</s>` of Qwen2 is a piece of HTML.

use super::{
    Model, special_id,
    vocab::{TokenKind, Vocab},
};
use crate::load::{LoadError, gguf::Header};

pub(super) const EOS_KEY: &str = "tokenizer.ggml.eos_token_id";
const KEYS: [&str; 3] = [EOS_KEY, "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"];

/// Ends of a sequence, a turn, a message, and (from `<|fim_pad|>` on) of a file in a code model.
const NAMES: [&str; 24] = [
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<｜end▁of▁sentence｜>",
    "<eos>",
    "</s>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|fim_pad|>",
    "<fim_pad>",
    "<fim-pad>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<reponame>",
    "<|file_sep|>",
];

/// The ends of the vocabulary, ascending; makes them control tokens.
pub(super) fn find(
    header: &Header,
    vocab: &mut Vocab,
    model: &Model,
) -> Result<Vec<u32>, LoadError> {
    let is_text = |id: u32| vocab.kind(id) == Some(TokenKind::Normal) && model.makes(id);
    let named = NAMES.iter().filter_map(|name| vocab.id(name));
    let mut ends: Vec<u32> = named.filter(|&id| !is_text(id)).collect();
    for key in KEYS {
        ends.extend(special_id(header, key, vocab)?);
    }
    ends.sort_unstable();
    ends.dedup();
    for &id in &ends {
        vocab.make_control(id);
    }
    Ok(ends)
}
