//! Byte-pair encoding of one word: merge the adjacent pair of lowest rank, leftmost first, until
//! no pair has a rank (Sennrich et al., arXiv:1508.07909).
//!
//! A queue of (rank, position) makes a word of n bytes cost at most n log n, so a million equal
//! letters, which are one word, take a fraction of a second; nothing recurses.

use super::{alphabet, queue::Queue, vocab::Vocab};
use crate::load::{
    LoadError,
    gguf::{Header, Strings},
};
use hashbrown::HashMap;

const MERGES_KEY: &str = "tokenizer.ggml.merges";

/// Longest run of bytes that is merged as one word; positions take 32 bits.
const MAX_WORD_BYTES: usize = 1 << 30;

/// No rank, no neighbour, no token.
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
    symbols: Vec<Symbol>,
    queue: Queue,
    text: String,
}

/// A token of the word in the making, linked to its neighbours.
#[derive(Clone, Copy)]
struct Symbol {
    id: u32,
    previous: u32,
    next: u32,
    /// Rank of the pair that this symbol and the next one form; `NONE` also once merged away.
    rank: u32,
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
            self.start(part, scratch);
            self.merge(scratch);
            let Scratch { symbols, .. } = scratch;
            let mut at = if symbols.is_empty() { NONE } else { 0 };
            while let Some(symbol) = symbols.get(at as usize) {
                ids.push(symbol.id);
                at = symbol.next;
            }
        }
    }

    /// One symbol per byte, and all pairs that can merge.
    fn start(&self, word: &[u8], scratch: &mut Scratch) {
        let Scratch { symbols, queue, .. } = scratch;
        symbols.clear();
        let known = word.iter().map(|&byte| self.bytes[usize::from(byte)]).filter(|&id| id != NONE);
        for (at, id) in (0..).zip(known) {
            let previous = if at == 0 { NONE } else { at - 1 };
            symbols.push(Symbol { id, previous, next: at + 1, rank: NONE });
        }
        let Some(last) = symbols.last_mut() else { return };
        last.next = NONE;
        queue.clear();
        for at in 0..symbols.len() - 1 {
            let rank = self.rank(symbols[at].id, symbols[at + 1].id);
            if rank != NONE {
                symbols[at].rank = rank;
                queue.push(rank, at as u32);
            }
        }
    }

    fn merge(&self, Scratch { symbols, queue, .. }: &mut Scratch) {
        while let Some((rank, at)) = queue.pop() {
            let Symbol { previous, next, rank: now, .. } = symbols[at as usize];
            // The pair may have changed since it was queued; then it was queued anew.
            if rank != now {
                continue;
            }
            let after = symbols[next as usize].next;
            symbols[next as usize].rank = NONE;
            symbols[at as usize].id = self.products[rank as usize];
            symbols[at as usize].next = after;
            if after != NONE {
                symbols[after as usize].previous = at;
            }
            for left in [previous, at] {
                self.requeue(left, symbols, queue);
            }
        }
    }

    /// Ranks the pair that begins at `left` after one of its symbols has changed.
    fn requeue(&self, left: u32, symbols: &mut [Symbol], queue: &mut Queue) {
        let Some(&Symbol { id, next, .. }) = symbols.get(left as usize) else { return };
        let rank = symbols.get(next as usize).map_or(NONE, |right| self.rank(id, right.id));
        symbols[left as usize].rank = rank;
        if rank != NONE {
            queue.push(rank, left);
        }
    }

    /// Whether a merge makes this token.
    pub(super) fn makes(&self, id: u32) -> bool {
        self.products.contains(&id)
    }

    fn rank(&self, left: u32, right: u32) -> u32 {
        self.ranks.get(&(left, right)).copied().unwrap_or(NONE)
    }
}

/// The two texts of a merge, which one blank separates; the byte alphabet has none.
fn split(merge: &[u8]) -> Option<(&str, &str)> {
    let (left, right) = std::str::from_utf8(merge).ok()?.split_once(' ')?;
    (!left.is_empty() && !right.is_empty()).then_some((left, right))
}
