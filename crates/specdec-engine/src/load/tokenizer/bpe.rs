//! Byte-pair encoding of one word, from its bytes, by a list of merges.

use super::{
    alphabet,
    merge::{Merger, Rules},
    vocab::Vocab,
};
use crate::load::{
    LoadError,
    gguf::{Header, Strings},
};
use hashbrown::HashMap;

const MERGES_KEY: &str = "tokenizer.ggml.merges";

/// Longest run of bytes that is merged as one word; positions take 32 bits.
const MAX_WORD_BYTES: usize = 1 << 30;

/// No token.
const NONE: u32 = u32::MAX;

/// The merges of a vocabulary.
#[derive(Debug)]
pub(super) struct Bpe {
    /// Token of each byte.
    bytes: [u32; 256],
    /// Rank of a pair of tokens.
    ranks: HashMap<(u32, u32), u32>,
    /// The token that the merge of a rank makes.
    products: Vec<u32>,
    /// Whether a word that is a token is taken whole, even if no merges lead to it.
    whole_words_first: bool,
}

/// Buffers that one text's words share.
#[derive(Default)]
pub(super) struct Scratch {
    merger: Merger<u32>,
    text: String,
}

impl Bpe {
    pub(super) fn from_gguf(
        header: &Header,
        vocab: &Vocab,
        whole_words_first: bool,
    ) -> Result<Self, LoadError> {
        let merges: &Strings = header.get(MERGES_KEY)?;
        let mut bpe = Self {
            bytes: alphabet::CHARS
                .map(|char| vocab.id(char.encode_utf8(&mut [0; 4])).unwrap_or(NONE)),
            ranks: HashMap::with_capacity(merges.len()),
            products: Vec::with_capacity(merges.len()),
            whole_words_first,
        };
        let mut product = String::new();
        for (rank, merge) in (0..).zip(merges.iter()) {
            let (left, right) =
                split(merge).ok_or(LoadError::Merge { rank, reason: "is no pair of texts" })?;
            product.clear();
            product.extend([left, right]);
            match (vocab.id(left), vocab.id(right), vocab.id(&product)) {
                (Some(left), Some(right), Some(product)) => {
                    bpe.ranks.entry((left, right)).or_insert(rank);
                    bpe.products.push(product);
                }
                _ => return Err(LoadError::Merge { rank, reason: "names an unknown token" }),
            }
        }
        Ok(bpe)
    }

    /// Appends the ids of a word. Bytes without a token are dropped.
    pub(super) fn encode(
        &self,
        word: &[u8],
        vocab: &Vocab,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) {
        if self.whole_words_first {
            scratch.text.clear();
            scratch.text.extend(word.iter().map(|&byte| alphabet::CHARS[usize::from(byte)]));
            if let Some(id) = vocab.id(&scratch.text) {
                ids.push(id);
                return;
            }
        }
        for part in word.chunks(MAX_WORD_BYTES) {
            let known = part.iter().map(|&byte| self.bytes[usize::from(byte)]);
            ids.extend(scratch.merger.merge(known.filter(|&id| id != NONE), self));
        }
    }

    /// Whether a merge makes this token.
    pub(super) fn makes(&self, id: u32) -> bool {
        self.products.contains(&id)
    }
}

impl Rules for Bpe {
    type Symbol = u32;

    fn rank(&self, left: u32, right: u32) -> Option<u32> {
        self.ranks.get(&(left, right)).copied()
    }

    fn union(&self, _: u32, _: u32, rank: u32) -> u32 {
        self.products[rank as usize]
    }
}

/// The two texts of a merge, which one blank separates; the byte alphabet has none.
fn split(merge: &[u8]) -> Option<(&str, &str)> {
    let (left, right) = std::str::from_utf8(merge).ok()?.split_once(' ')?;
    (!left.is_empty() && !right.is_empty()).then_some((left, right))
}
