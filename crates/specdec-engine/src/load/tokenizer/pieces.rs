//! Byte-pair encoding as `SentencePiece` does it: the pair of neighbours whose union is the token of the
//! highest score merges first, leftmost among equals (Kudo and Richardson, arXiv:1808.06226).
//! Characters without a token are spelt in bytes.
//!
//! There are no words: a text is one run, in which blanks are written `▁`. A queue makes it cost at
//! most n log n, as in `bpe.rs`.

use super::{
    queue::Queue,
    vocab::{BLANK, TokenKind, Vocab},
};
use crate::load::{
    LoadError,
    gguf::{Header, Numbers, Value},
};

const SCORES_KEY: &str = "tokenizer.ggml.scores";
const PREFIX_KEY: &str = "tokenizer.ggml.add_space_prefix";
const UNKNOWN_KEY: &str = "tokenizer.ggml.unknown_token_id";

/// No rank, no neighbour, no token.
const NONE: u32 = u32::MAX;

/// Longest text that is merged as one run; positions take 32 bits.
const MAX_RUN_BYTES: usize = 1 << 29;

/// The scores of a vocabulary as ranks, best first.
#[derive(Debug)]
pub(super) struct Pieces {
    ranks: Vec<u32>,
    /// Token of each byte; the unknown token, or none, where there is no such token.
    bytes: [u32; 256],
    longest: usize,
    /// Whether a text begins with a blank that nobody wrote.
    pub(super) blank_first: bool,
}

/// Buffers that one text's runs share.
#[derive(Default)]
pub(super) struct Scratch {
    symbols: Vec<Symbol>,
    queue: Queue,
    text: String,
}

/// A stretch of the run, linked to its neighbours.
#[derive(Clone, Copy)]
struct Symbol {
    start: u32,
    end: u32,
    previous: u32,
    next: u32,
    /// Rank of the union with the next one; `NONE` also once merged away.
    rank: u32,
}

impl Pieces {
    pub(super) fn from_gguf(header: &Header, vocab: &Vocab) -> Result<Self, LoadError> {
        let unknown = super::special_id(header, UNKNOWN_KEY, vocab)?.unwrap_or(NONE);
        let byte = |byte: usize| vocab.id(&format!("<0x{byte:02X}>"));
        let is_byte = |&id: &u32| vocab.kind(id) == Some(TokenKind::Byte);
        Ok(Self {
            ranks: ranks(&scores(header, vocab.len())?),
            bytes: std::array::from_fn(|at| byte(at).filter(is_byte).unwrap_or(unknown)),
            longest: (0..vocab.len() as u32)
                .filter_map(|id| vocab.text(id))
                .map(str::len)
                .max()
                .unwrap_or(0),
            blank_first: header.find(PREFIX_KEY)?.unwrap_or(true),
        })
    }

    /// Appends the ids of a text.
    pub(super) fn encode(
        &self,
        text: &str,
        vocab: &Vocab,
        scratch: &mut Scratch,
        ids: &mut Vec<u32>,
    ) {
        let mut rest = std::mem::take(&mut scratch.text);
        rest.clear();
        rest.extend(self.blank_first.then_some(BLANK));
        rest.extend(text.chars().map(|char| if char == ' ' { BLANK } else { char }));
        let mut run = rest.as_str();
        while !run.is_empty() {
            let most =
                (0..=MAX_RUN_BYTES.min(run.len())).rev().find(|&at| run.is_char_boundary(at));
            let (now, later) = run.split_at(most.unwrap_or(run.len()));
            self.start(now, vocab, scratch);
            self.merge(now, vocab, scratch);
            self.spell(now, vocab, scratch, ids);
            run = later;
        }
        scratch.text = rest;
    }

    /// One symbol per character, and all pairs that can merge.
    fn start(&self, run: &str, vocab: &Vocab, scratch: &mut Scratch) {
        let Scratch { symbols, queue, .. } = scratch;
        symbols.clear();
        queue.clear();
        for (at, (start, char)) in (0u32..).zip(run.char_indices()) {
            let (start, end) = (start as u32, (start + char.len_utf8()) as u32);
            let previous = at.wrapping_sub(1);
            symbols.push(Symbol { start, end, previous, next: at + 1, rank: NONE });
        }
        if let Some(last) = symbols.last_mut() {
            last.next = NONE;
        }
        for at in 0..symbols.len() as u32 {
            self.requeue(at, run, vocab, symbols, queue);
        }
    }

    fn merge(&self, run: &str, vocab: &Vocab, Scratch { symbols, queue, .. }: &mut Scratch) {
        while let Some((rank, at)) = queue.pop() {
            let Symbol { previous, next, rank: now, .. } = symbols[at as usize];
            // The pair may have changed since it was queued; then it was queued anew.
            if rank != now {
                continue;
            }
            let Symbol { end, next: after, .. } = symbols[next as usize];
            symbols[next as usize].rank = NONE;
            symbols[at as usize].end = end;
            symbols[at as usize].next = after;
            if after != NONE {
                symbols[after as usize].previous = at;
            }
            for left in [previous, at] {
                self.requeue(left, run, vocab, symbols, queue);
            }
        }
    }

    /// Ranks the pair that begins at `left` after one of its symbols has changed.
    fn requeue(
        &self,
        left: u32,
        run: &str,
        vocab: &Vocab,
        symbols: &mut [Symbol],
        queue: &mut Queue,
    ) {
        let Some(&Symbol { start, next, .. }) = symbols.get(left as usize) else { return };
        let union = symbols.get(next as usize).map(|right| start as usize..right.end as usize);
        let short = union.filter(|union| union.len() <= self.longest);
        let token = short.and_then(|union| text_token(&run[union], vocab));
        let rank = token.map_or(NONE, |id| self.ranks[id as usize]);
        symbols[left as usize].rank = rank;
        if rank != NONE {
            queue.push(rank, left);
        }
    }

    fn spell(&self, run: &str, vocab: &Vocab, scratch: &Scratch, ids: &mut Vec<u32>) {
        let mut at = 0;
        while let Some(symbol) = scratch.symbols.get(at as usize) {
            let text = &run[symbol.start as usize..symbol.end as usize];
            match text_token(text, vocab) {
                Some(id) => ids.push(id),
                None => ids.extend(
                    text.bytes().map(|byte| self.bytes[usize::from(byte)]).filter(|&id| id != NONE),
                ),
            }
            at = symbol.next;
        }
    }
}

/// The token that stands for this text: never a control token.
fn text_token(text: &str, vocab: &Vocab) -> Option<u32> {
    vocab.id(text).filter(|&id| vocab.kind(id) == Some(TokenKind::Normal))
}

fn scores(header: &Header, count: usize) -> Result<Vec<f64>, LoadError> {
    let numbers: &Numbers = header.get(SCORES_KEY)?;
    let wrong = |found: String, expected: String| LoadError::KeyValue {
        key: SCORES_KEY.to_owned(),
        found,
        expected,
    };
    if numbers.len() != count {
        let found = format!("{} elements", numbers.len());
        return Err(wrong(found, format!("one for each of the {count} tokens")));
    }
    let score = |value| match value {
        Value::Float(score) if !score.is_nan() => Ok(score),
        other => Err(wrong(format!("{other:?}"), "floats".to_owned())),
    };
    numbers.iter().map(score).collect()
}

/// Place of each score in descending order; equal scores share one.
fn ranks(scores: &[f64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..scores.len() as u32).collect();
    let score = |id: u32| scores[id as usize];
    order.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
    let mut ranks = vec![0; scores.len()];
    let mut rank = 0;
    for (place, &id) in order.iter().enumerate() {
        if place > 0 && score(order[place - 1]) > score(id) {
            rank += 1;
        }
        ranks[id as usize] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_score_has_the_first_rank_and_equals_share_one() {
        assert_eq!(ranks(&[-3.0, -1.0, -3.0, 0.0, -0.0]), [2, 1, 2, 0, 0]);
    }
}
