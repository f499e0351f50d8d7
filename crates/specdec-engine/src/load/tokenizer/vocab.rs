//! The tokens: how each is written, which bytes it stands for, what kind it is.

use super::{super::LoadError, alphabet, packed::Packed};
use crate::load::gguf::{Header, Numbers, Strings, Value};
use hashbrown::{DefaultHashBuilder, HashTable, hash_table::Entry};
use std::hash::BuildHasher;

const TOKENS_KEY: &str = "tokenizer.ggml.tokens";
const KINDS_KEY: &str = "tokenizer.ggml.token_type";

/// Longest token; the longest ones in use are runs of some hundred blanks.
const MAX_TOKEN_BYTES: usize = 4096;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Text, written in the byte alphabet.
    Normal,
    /// Steers the model: begin and end of a turn, padding, unknown.
    Control,
    /// Text that is always one token.
    UserDefined,
    /// A number without a meaning.
    Unused,
    /// One byte of a character that has no token, written `<0xE2>` (`SentencePiece`).
    Byte,
}

/// How tokens are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// In the byte alphabet.
    Alphabet,
    /// As text with [`BLANK`] for blanks.
    Pieces,
}

/// What stands for a blank in `SentencePiece`.
pub(super) const BLANK: char = '▁';

impl TokenKind {
    /// The kinds of llama.cpp's `llama_token_type`.
    fn from_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Unsigned(1) | Value::Signed(1) => Self::Normal,
            Value::Unsigned(2 | 3) | Value::Signed(2 | 3) => Self::Control,
            Value::Unsigned(4) | Value::Signed(4) => Self::UserDefined,
            Value::Unsigned(0 | 5) | Value::Signed(0 | 5) => Self::Unused,
            Value::Unsigned(6) | Value::Signed(6) => Self::Byte,
            _ => return None,
        })
    }
}

#[derive(Debug)]
pub(super) struct Vocab {
    texts: Packed,
    pieces: Packed,
    kinds: Vec<TokenKind>,
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Vocab {
    pub(super) fn from_gguf(header: &Header, writing: Writing) -> Result<Self, LoadError> {
        let tokens: &Strings = header.get(TOKENS_KEY)?;
        let kinds = read_kinds(header, tokens.len())?;
        let mut vocab = Self {
            texts: Packed::default(),
            pieces: Packed::default(),
            ids: HashTable::with_capacity(tokens.len()),
            hasher: DefaultHashBuilder::default(),
            kinds,
        };
        for (id, token) in (0..).zip(tokens.iter()) {
            vocab.push(id, token, writing).map_err(|reason| LoadError::Token { id, reason })?;
        }
        Ok(vocab)
    }

    fn push(&mut self, id: u32, token: &[u8], writing: Writing) -> Result<(), &'static str> {
        const FULL: &str = "is beyond 4 GiB of vocabulary";
        let text = std::str::from_utf8(token).map_err(|_| "is not valid UTF-8")?;
        if token.len() > MAX_TOKEN_BYTES {
            return Err("is longer than 4096 bytes");
        }
        self.texts.push(token.iter().copied()).ok_or(FULL)?;
        self.push_piece(text, self.kinds[id as usize], writing)?.ok_or(FULL)?;
        if token.is_empty() {
            return Ok(());
        }
        let (texts, hasher) = (&self.texts, &self.hasher);
        match self.ids.entry(
            hasher.hash_one(token),
            |&other| texts.get(other as usize) == Some(token),
            |&other| hasher.hash_one(texts.get(other as usize).unwrap_or_default()),
        ) {
            Entry::Occupied(_) => Err("is written like an earlier one"),
            Entry::Vacant(place) => {
                place.insert(id);
                Ok(())
            }
        }
    }

    /// The bytes that a token stands for; `None` if the vocabulary is full.
    fn push_piece(
        &mut self,
        text: &str,
        kind: TokenKind,
        writing: Writing,
    ) -> Result<Option<()>, &'static str> {
        Ok(match (kind, writing) {
            (TokenKind::Normal, Writing::Alphabet) => match alphabet::bytes(text) {
                Some(bytes) => self.pieces.push(bytes),
                None => self.pieces.push(text.bytes()),
            },
            (TokenKind::Byte, Writing::Alphabet) => {
                return Err("stands for a byte, which this tokenizer spells otherwise");
            }
            (TokenKind::Byte, Writing::Pieces) => {
                let byte = text.strip_prefix("<0x").and_then(|text| text.strip_suffix('>'));
                let byte = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                self.pieces.push([byte.ok_or("stands for no byte")?])
            }
            (TokenKind::Normal | TokenKind::UserDefined, Writing::Pieces) => {
                self.pieces.push(text.replace(BLANK, " ").bytes())
            }
            _ => self.pieces.push(text.bytes()),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn id(&self, text: &str) -> Option<u32> {
        let same = |&id: &u32| self.texts.get(id as usize) == Some(text.as_bytes());
        self.ids.find(self.hasher.hash_one(text.as_bytes()), same).copied()
    }

    pub(super) fn text(&self, id: u32) -> Option<&str> {
        self.texts.get(id as usize).and_then(|text| std::str::from_utf8(text).ok())
    }

    /// The bytes of a token, whatever its kind.
    pub(super) fn piece(&self, id: u32) -> &[u8] {
        self.pieces.get(id as usize).unwrap_or_default()
    }

    /// Bytes of the longest token, at least 1.
    pub(super) fn longest(&self) -> usize {
        (0..self.len() as u32).map(|id| self.piece(id).len()).max().unwrap_or(0).max(1)
    }

    pub(super) fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    pub(super) fn make_control(&mut self, id: u32) {
        self.kinds[id as usize] = TokenKind::Control;
    }

    /// Ids and texts of one kind.
    pub(super) fn of_kind(&self, kind: TokenKind) -> impl Iterator<Item = (u32, &str)> {
        (0..self.len() as u32)
            .filter(move |&id| self.kind(id) == Some(kind))
            .filter_map(|id| Some((id, self.text(id)?)))
            .filter(|(_, text)| !text.is_empty())
    }
}

/// The kind of each of `count` tokens; all are normal where the file does not say.
fn read_kinds(header: &Header, count: usize) -> Result<Vec<TokenKind>, LoadError> {
    match header.find::<&Numbers>(KINDS_KEY)? {
        None => Ok(vec![TokenKind::Normal; count]),
        Some(_) => of_each(header, KINDS_KEY, count, "kinds from 0 to 6", TokenKind::from_value),
    }
}

/// What a key says of each of `count` tokens, as `read` takes its numbers.
pub(super) fn of_each<T>(
    header: &Header,
    key: &str,
    count: usize,
    expected: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Vec<T>, LoadError> {
    let numbers: &Numbers = header.get(key)?;
    let wrong = |found: String, expected: String| {
        let key = key.to_owned();
        LoadError::KeyValue { key, found, expected }
    };
    if numbers.len() != count {
        let found = format!("{} elements", numbers.len());
        return Err(wrong(found, format!("one for each of the {count} tokens")));
    }
    let read =
        |value: Value| read(&value).ok_or_else(|| wrong(format!("{value:?}"), expected.to_owned()));
    numbers.iter().map(read).collect()
}
