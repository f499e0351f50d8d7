//! Byte-pair encoding as `SentencePiece` does it: the pair of neighbours whose union is the token of the
//! highest score merges first, leftmost among equals (Kudo and Richardson, arXiv:1808.06226).
//! Characters without a token are spelt in bytes.
//!
//! There are no words: a text is one run, in which blanks are written `▁`.

use super::{
    merge::{Merger, Rules},
    vocab::{BLANK, TokenKind, Vocab, of_each},
};
use crate::load::{
    LoadError,
    gguf::{Header, Value},
};

const SCORES_KEY: &str = "tokenizer.ggml.scores";
const PREFIX_KEY: &str = "tokenizer.ggml.add_space_prefix";
const UNKNOWN_KEY: &str = "tokenizer.ggml.unknown_token_id";

/// No token.
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
    merger: Merger<Stretch>,
    text: String,
}

/// Where a stretch of the run begins and ends, in bytes.
type Stretch = (u32, u32);

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
            self.encode_run(now, vocab, &mut scratch.merger, ids);
            run = later;
        }
        scratch.text = rest;
    }

    fn encode_run(
        &self,
        text: &str,
        vocab: &Vocab,
        merger: &mut Merger<Stretch>,
        ids: &mut Vec<u32>,
    ) {
        let run = Run { pieces: self, text, vocab };
        let ends = |(start, char): (usize, char)| (start as u32, (start + char.len_utf8()) as u32);
        for stretch in merger.merge(text.char_indices().map(ends), &run) {
            match run.token(stretch) {
                Some(id) => ids.push(id),
                None => ids.extend(
                    run.text(stretch)
                        .bytes()
                        .map(|byte| self.bytes[usize::from(byte)])
                        .filter(|&id| id != NONE),
                ),
            }
        }
    }
}

/// A text that is merged.
struct Run<'a> {
    pieces: &'a Pieces,
    text: &'a str,
    vocab: &'a Vocab,
}

impl Run<'_> {
    fn text(&self, (start, end): Stretch) -> &str {
        &self.text[start as usize..end as usize]
    }

    /// The token that stands for a stretch: never a control token.
    fn token(&self, stretch: Stretch) -> Option<u32> {
        let id = self.vocab.id(self.text(stretch))?;
        (self.vocab.kind(id) == Some(TokenKind::Normal)).then_some(id)
    }
}

impl Rules for Run<'_> {
    type Symbol = Stretch;

    fn rank(&self, left: Stretch, right: Stretch) -> Option<u32> {
        let union = (left.0, right.1);
        let short = (union.1 - union.0) as usize <= self.pieces.longest;
        let id = short.then(|| self.token(union))??;
        Some(self.pieces.ranks[id as usize])
    }

    fn union(&self, left: Stretch, right: Stretch, _: u32) -> Stretch {
        (left.0, right.1)
    }
}

fn scores(header: &Header, count: usize) -> Result<Vec<f64>, LoadError> {
    of_each(header, SCORES_KEY, count, "floats", |value| match *value {
        Value::Float(score) if !score.is_nan() => Some(score),
        _ => None,
    })
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
