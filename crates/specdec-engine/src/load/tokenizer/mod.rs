//! Text to token ids and back: byte-level BPE or `SentencePiece`, built from the metadata of the
//! model file.
//!
//! ```text
//! text -> control tokens | text -> user-defined tokens | text -> words -> bytes -> merges -> ids
//!                                                             \-> characters -> merges -> ids
//! ```
//!
//! Text is taken as it is (no Unicode normalisation), so `decode(encode(text)) == text` wherever
//! the vocabulary has all bytes of the text.

mod alphabet;
mod bpe;
mod ends;
mod merge;
mod packed;
mod pieces;
mod queue;
mod special;
mod stream;
mod vocab;
mod words;

pub use stream::TextDecoder;
pub use vocab::TokenKind;

use super::{LoadError, gguf::Header};
use bpe::Bpe;
use pieces::Pieces;
use special::{Matcher, Part};
use vocab::{Vocab, Writing};
use words::Splitter;

/// Values of `tokenizer.ggml.model` that are known.
const BYTE_LEVEL: &str = "gpt2";
const SENTENCE_PIECE: &str = "llama";

const MODEL_KEY: &str = "tokenizer.ggml.model";
const PRE_KEY: &str = "tokenizer.ggml.pre";
const BOS_KEY: &str = "tokenizer.ggml.bos_token_id";
const ADD_BOS_KEY: &str = "tokenizer.ggml.add_bos_token";

/// What a control token that is written out in a text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// The control token.
    Parse,
    /// Text like any other: no control token can come out.
    AsText,
}

/// From text without special tokens to ids.
#[derive(Debug)]
enum Model {
    Bytes(Bpe, Splitter),
    Pieces(Pieces),
}

/// Buffers that one text's parts share.
#[derive(Default)]
struct Scratch {
    bytes: bpe::Scratch,
    pieces: pieces::Scratch,
}

impl Model {
    fn from_gguf(header: &Header, model: &str, vocab: &Vocab) -> Result<Self, LoadError> {
        if model == SENTENCE_PIECE {
            return Pieces::from_gguf(header, vocab).map(Self::Pieces);
        }
        let splitter = match header.find::<&str>(PRE_KEY)? {
            None => Splitter::gpt2(),
            Some(pre) => Splitter::from_name(pre)
                .ok_or_else(|| unsupported(PRE_KEY, pre, words::NAMES.join(", ")))?,
        };
        let bpe = Bpe::from_gguf(header, vocab, splitter.whole_words_first())?;
        Ok(Self::Bytes(bpe, splitter))
    }

    /// Whether ordinary text can become this token, if the file calls it text.
    fn makes(&self, id: u32) -> bool {
        match self {
            Self::Bytes(bpe, _) => bpe.makes(id),
            Self::Pieces(_) => true,
        }
    }

    /// Whether prompts begin with the token that begins a sequence, unless the file says.
    fn begins_with_bos(&self) -> bool {
        match self {
            Self::Bytes(_, splitter) => splitter.begins_with_bos(),
            Self::Pieces(_) => true,
        }
    }

    fn encode(&self, text: &str, vocab: &Vocab, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        match self {
            Self::Bytes(bpe, splitter) => {
                for word in splitter.words(text) {
                    bpe.encode(word.as_bytes(), vocab, &mut scratch.bytes, ids);
                }
            }
            Self::Pieces(pieces) => pieces.encode(text, vocab, &mut scratch.pieces, ids),
        }
    }
}

/// The tokenizer of one model.
#[derive(Debug)]
pub struct Tokenizer {
    vocab: Vocab,
    model: Model,
    control: Matcher,
    user_defined: Matcher,
    bos: Option<u32>,
    eos: Option<u32>,
    add_bos: bool,
    ends: Vec<u32>,
}

impl Tokenizer {
    /// Builds the tokenizer that the file describes.
    ///
    /// # Errors
    /// [`LoadError::Tokenizer`] for a model or pre-tokenizer without code here; a token, a merge
    /// or a special id that contradicts the vocabulary; a missing key.
    pub fn from_gguf(header: &Header) -> Result<Self, LoadError> {
        let model: &str = header.get(MODEL_KEY)?;
        let writing = match model {
            BYTE_LEVEL => Writing::Alphabet,
            SENTENCE_PIECE => Writing::Pieces,
            _ => {
                let supported = [BYTE_LEVEL, SENTENCE_PIECE].join(", ");
                return Err(unsupported(MODEL_KEY, model, supported));
            }
        };
        let mut vocab = Vocab::from_gguf(header, writing)?;
        let model = Model::from_gguf(header, model, &vocab)?;
        let ends = ends::find(header, &mut vocab, &model)?;
        let bos = special_id(header, BOS_KEY, &vocab)?;
        let add_bos = header.find(ADD_BOS_KEY)?.unwrap_or(model.begins_with_bos());
        if add_bos && bos.is_none() {
            return Err(LoadError::MissingKey { key: BOS_KEY.to_owned() });
        }
        Ok(Self {
            model,
            control: Matcher::new(&vocab, TokenKind::Control)?,
            user_defined: Matcher::new(&vocab, TokenKind::UserDefined)?,
            eos: special_id(header, ends::EOS_KEY, &vocab)?,
            vocab,
            bos,
            add_bos,
            ends,
        })
    }

    /// The ids of `text`, with the token that begins a sequence in front if `add_bos` is set and
    /// the model has one. Never fails; bytes that the vocabulary lacks are dropped.
    pub fn encode(&self, text: &str, specials: Specials, add_bos: bool) -> Vec<u32> {
        let mut ids: Vec<u32> = self.bos.filter(|_| add_bos).into_iter().collect();
        ids.extend(self.encode_runs([(text, specials)].into_iter()));
        ids
    }

    /// The ids of a text in pieces. A control token stands within one piece that is to be parsed;
    /// words run across pieces.
    pub(super) fn encode_runs<'t>(
        &self,
        runs: impl Iterator<Item = (&'t str, Specials)>,
    ) -> Vec<u32> {
        let (mut ids, mut scratch, mut text) = (Vec::new(), Scratch::default(), String::new());
        for (run, specials) in runs {
            if specials == Specials::AsText {
                text.push_str(run);
                continue;
            }
            for part in self.control.split(run) {
                match part {
                    Part::Text(part) => text.push_str(part),
                    Part::Token(id) => {
                        self.encode_text(&text, &mut scratch, &mut ids);
                        text.clear();
                        ids.push(id);
                    }
                }
            }
        }
        self.encode_text(&text, &mut scratch, &mut ids);
        ids
    }

    fn encode_text(&self, text: &str, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        for part in self.user_defined.split(text) {
            match part {
                Part::Token(id) => ids.push(id),
                Part::Text(text) => self.model.encode(text, &self.vocab, scratch, ids),
            }
        }
    }

    /// The text of `ids`; bytes that are no UTF-8 become U+FFFD. Control tokens show as their
    /// names unless `skip_special` is set.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> String {
        let mut bytes = Vec::new();
        for &id in ids {
            bytes.extend_from_slice(self.shown_bytes(id, skip_special));
        }
        // The blank that encoding puts in front of a text.
        let added = matches!(&self.model, Model::Pieces(pieces) if pieces.blank_first);
        let start = usize::from(added && bytes.first() == Some(&b' '));
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    /// The bytes that token `id` adds to a text: none for control and unused tokens and for ids
    /// beyond the vocabulary (rows that only pad the embedding table).
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        match self.vocab.kind(id) {
            Some(TokenKind::Normal | TokenKind::UserDefined | TokenKind::Byte) => {
                self.vocab.piece(id)
            }
            _ => &[],
        }
    }

    /// What token `id` shows in an output: as [`Tokenizer::token_bytes`], and the names of control
    /// tokens unless `skip_special` is set.
    pub fn shown_bytes(&self, id: u32, skip_special: bool) -> &[u8] {
        match self.vocab.kind(id) {
            Some(TokenKind::Control) if !skip_special => self.vocab.piece(id),
            _ => self.token_bytes(id),
        }
    }

    /// Number of tokens; the embedding table may have more rows.
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// Bytes of the longest token.
    pub fn longest_token(&self) -> usize {
        self.vocab.longest()
    }

    /// The token written `text` in the file: `<|im_end|>`, or a word in the byte alphabet
    /// (`Ġthe`).
    pub fn token_id(&self, text: &str) -> Option<u32> {
        self.vocab.id(text)
    }

    /// How token `id` is written in the file.
    pub fn token_text(&self, id: u32) -> Option<&str> {
        self.vocab.text(id)
    }

    /// What kind of token `id` is.
    pub fn token_kind(&self, id: u32) -> Option<TokenKind> {
        self.vocab.kind(id)
    }

    /// Whether `id` steers the model instead of standing for text.
    pub fn is_control(&self, id: u32) -> bool {
        self.vocab.kind(id) == Some(TokenKind::Control)
    }

    /// The token that begins a sequence.
    pub fn bos_id(&self) -> Option<u32> {
        self.bos
    }

    /// The token that ends a sequence (`tokenizer.ggml.eos_token_id`).
    pub fn eos_id(&self) -> Option<u32> {
        self.eos
    }

    /// Whether the model expects [`Tokenizer::bos_id`] in front of a prompt.
    pub fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// All tokens that end a generation, ascending: of the sequence, of a turn, of a file.
    pub fn end_ids(&self) -> &[u32] {
        &self.ends
    }
}

fn unsupported(key: &'static str, found: &str, supported: String) -> LoadError {
    LoadError::Tokenizer { key, found: found.to_owned(), supported }
}

/// The token id under a key that may be missing; it must be in the vocabulary.
fn special_id(header: &Header, key: &str, vocab: &Vocab) -> Result<Option<u32>, LoadError> {
    match header.find::<u32>(key)? {
        Some(id) if id as usize >= vocab.len() => Err(LoadError::KeyValue {
            key: key.to_owned(),
            found: id.to_string(),
            expected: format!("a token below {}", vocab.len()),
        }),
        found => Ok(found),
    }
}
