//! Finds the tokens that are written out in a text.

use super::vocab::{TokenKind, Vocab};
use crate::load::LoadError;
use aho_corasick::{AhoCorasick, MatchKind};

/// Most tokens of a kind that are searched for; vocabularies have up to some thousands.
const MAX_TOKENS: usize = 1 << 16;

/// Matcher of the tokens of one kind, leftmost first, then longest.
#[derive(Debug)]
pub(super) struct Matcher {
    automaton: AhoCorasick,
    ids: Vec<u32>,
}

/// The tokens of a kind that are recognised in a text. A control token of one character is not:
/// nothing could be put into it to keep it text where a message mentions it.
pub(super) fn recognised(vocab: &Vocab, kind: TokenKind) -> impl Iterator<Item = (u32, &str)> {
    let long = move |text: &str| kind != TokenKind::Control || text.chars().nth(1).is_some();
    vocab.of_kind(kind).filter(move |(_, text)| long(text))
}

/// A stretch of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Text(&'t str),
    Token(u32),
}

impl Matcher {
    pub(super) fn new(vocab: &Vocab, kind: TokenKind) -> Result<Self, LoadError> {
        let (ids, texts): (Vec<u32>, Vec<&str>) = recognised(vocab, kind).unzip();
        let refused = || LoadError::KeyValue {
            key: "tokenizer.ggml.token_type".to_owned(),
            found: format!("{} tokens of kind {kind:?}", ids.len()),
            expected: format!("at most {MAX_TOKENS}"),
        };
        if ids.len() > MAX_TOKENS {
            return Err(refused());
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&texts)
            .map_err(|_| refused())?;
        Ok(Self { automaton, ids })
    }

    /// Cuts a text at the tokens in it; no part is an empty text.
    pub(super) fn split<'t>(&self, text: &'t str) -> impl Iterator<Item = Part<'t>> {
        let mut matches = self.automaton.find_iter(text);
        let mut done = 0;
        let mut found = None;
        std::iter::from_fn(move || {
            let next = found.take().or_else(|| matches.next());
            match next {
                Some(token) if token.start() == done => {
                    done = token.end();
                    Some(Part::Token(self.ids[token.pattern().as_usize()]))
                }
                Some(token) => {
                    let part = Part::Text(&text[done..token.start()]);
                    done = token.start();
                    found = Some(token);
                    Some(part)
                }
                None if done < text.len() => {
                    let part = Part::Text(&text[done..]);
                    done = text.len();
                    Some(part)
                }
                None => None,
            }
        })
    }
}
