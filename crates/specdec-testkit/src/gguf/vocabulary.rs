//! A working byte-level BPE vocabulary: every byte is a token, so any text can be encoded.

use super::{Arch, Gguf, Value};

/// End of text, start and end of a message.
pub const SPECIALS: [&str; 3] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

/// Tokens that stand for one byte each.
pub const BYTES: usize = 256;

/// `ChatML` without a default system message.
pub const CHAT_TEMPLATE: &str = "{% for message in messages %}\
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// First merges, in order of rank. Pairs of letters follow.
const MERGES: [(&str, &str); 32] = [
    ("Ġ", "t"),
    ("h", "e"),
    ("i", "n"),
    ("Ġ", "a"),
    ("o", "n"),
    ("r", "e"),
    ("Ġt", "he"),
    ("e", "r"),
    ("Ġ", "Ġ"),
    ("Ġ", "s"),
    ("a", "t"),
    ("o", "r"),
    ("i", "s"),
    ("in", "g"),
    ("Ġ", "o"),
    ("e", "n"),
    ("ĠĠ", "ĠĠ"),
    ("Ġ", "c"),
    ("i", "t"),
    ("l", "l"),
    ("o", "u"),
    ("Ġo", "f"),
    ("a", "l"),
    ("Ġa", "n"),
    ("Ġan", "d"),
    ("e", "d"),
    ("Ġ", "w"),
    ("Ċ", "Ċ"),
    ("s", "t"),
    ("ll", "o"),
    ("he", "llo"),
    ("Ġw", "or"),
];

/// Token types of the format.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;
const UNUSED: i32 = 5;

/// Tokens, their types and the merges of one model.
#[derive(Clone, PartialEq, Debug)]
pub struct Vocabulary {
    /// Tokens by id, in GPT-2's byte alphabet.
    pub tokens: Vec<String>,
    /// Token types by id.
    pub types: Vec<i32>,
    /// Merges by rank, both halves separated by a space.
    pub merges: Vec<String>,
    first_byte: usize,
    first_special: usize,
}

impl Vocabulary {
    /// Fewest tokens that hold the specials and every byte.
    pub const LEAST: usize = SPECIALS.len() + BYTES;

    /// `size` tokens. As in the families' own files, llama has its specials first, qwen2 behind
    /// the text tokens; what is left over is unused padding.
    pub fn new(arch: Arch, size: usize) -> Self {
        let mut vocabulary = Self {
            tokens: Vec::with_capacity(size),
            types: Vec::with_capacity(size),
            merges: Vec::new(),
            first_byte: 0,
            first_special: 0,
        };
        let specials_last = matches!(arch, Arch::Qwen2 | Arch::Qwen3);
        if !specials_last {
            vocabulary.push_specials();
        }
        vocabulary.first_byte = vocabulary.tokens.len();
        for symbol in byte_symbols() {
            vocabulary.push(symbol.to_string(), NORMAL);
        }
        let room = size.saturating_sub(Self::LEAST);
        vocabulary.push_merges(room);
        if specials_last {
            vocabulary.push_specials();
        }
        while vocabulary.tokens.len() < size {
            vocabulary.push(format!("[PAD{}]", vocabulary.tokens.len()), UNUSED);
        }
        vocabulary
    }

    /// The id of the token that stands for `byte`.
    pub fn byte_id(&self, byte: u8) -> u32 {
        let symbol = symbol_of(byte);
        let index = byte_symbols().position(|other| other == symbol);
        (self.first_byte + index.unwrap_or_default()) as u32
    }

    /// The id of `SPECIALS[index]`.
    pub fn special_id(&self, index: usize) -> u32 {
        (self.first_special + index) as u32
    }

    /// Writes the tokenizer's keys.
    pub(super) fn describe(&self, file: &mut Gguf, pre: &str) {
        let strings = |items: &[String]| {
            Value::Array(items.iter().map(|item| Value::from(item.as_str())).collect())
        };
        file.set("tokenizer.ggml.model", "gpt2");
        file.set("tokenizer.ggml.pre", pre);
        file.set("tokenizer.ggml.tokens", strings(&self.tokens));
        let types = self.types.iter().map(|kind| Value::I32(*kind)).collect();
        file.set("tokenizer.ggml.token_type", Value::Array(types));
        file.set("tokenizer.ggml.merges", strings(&self.merges));
        file.set("tokenizer.ggml.bos_token_id", Value::U32(self.special_id(0)));
        file.set("tokenizer.ggml.eos_token_id", Value::U32(self.special_id(2)));
        file.set("tokenizer.ggml.padding_token_id", Value::U32(self.special_id(0)));
        file.set("tokenizer.ggml.add_bos_token", Value::Bool(false));
        file.set("tokenizer.chat_template", CHAT_TEMPLATE);
    }

    fn push(&mut self, token: String, kind: i32) {
        self.tokens.push(token);
        self.types.push(kind);
    }

    fn push_specials(&mut self) {
        self.first_special = self.tokens.len();
        for token in SPECIALS {
            self.push(token.to_owned(), CONTROL);
        }
    }

    fn push_merges(&mut self, room: usize) {
        let letters = || 'a'..='z';
        let common = MERGES.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
        let pairs = letters().flat_map(|a| letters().map(move |b| (a.to_string(), b.to_string())));
        let mut left = room;
        for (a, b) in common.chain(pairs) {
            let token = format!("{a}{b}");
            if left == 0 {
                break;
            }
            if !self.tokens.contains(&token) {
                self.push(token, NORMAL);
                self.merges.push(format!("{a} {b}"));
                left -= 1;
            }
        }
    }
}

/// Bytes that GPT-2's alphabet writes as themselves (in Latin-1).
fn is_plain(byte: u8) -> bool {
    matches!(byte, 33..=126 | 161..=172 | 174..=255)
}

/// The character that stands for `byte`: itself where it prints, else 256 + its rank among those
/// that do not.
fn symbol_of(byte: u8) -> char {
    if is_plain(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|other| !is_plain(*other)).count() as u32;
    char::from_u32(256 + rank).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The byte alphabet in the order of GPT-2's ids: printing characters first.
fn byte_symbols() -> impl Iterator<Item = char> {
    let plain = (0..=255).filter(|byte| is_plain(*byte));
    let rest = (0..=255).filter(|byte| !is_plain(*byte));
    plain.chain(rest).map(symbol_of)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_token_is_there_once_and_merges_build_tokens() {
        for arch in [Arch::Llama, Arch::Qwen2] {
            for size in [Vocabulary::LEAST, 300, 2000] {
                let v = Vocabulary::new(arch, size);
                assert_eq!((v.tokens.len(), v.types.len()), (size, size));
                let distinct: HashSet<&String> = v.tokens.iter().collect();
                assert_eq!(distinct.len(), size);
                let mut known: HashSet<String> = byte_symbols().map(String::from).collect();
                for merge in &v.merges {
                    let (a, b) = merge.split_once(' ').unwrap();
                    assert!(known.contains(a) && known.contains(b), "{merge}");
                    assert!(known.insert(format!("{a}{b}")), "{merge}");
                }
            }
        }
    }

    #[test]
    fn byte_alphabet_is_gpt2s() {
        // The four characters that every GPT-2 vocabulary shows: space, newline, tab, 0xAD.
        let symbols = [b' ', b'\n', b'\t', 0xAD].map(symbol_of);
        assert_eq!(symbols, ['\u{120}', '\u{10A}', '\u{109}', '\u{143}']);
        let v = Vocabulary::new(Arch::Llama, 300);
        assert_eq!(v.tokens[v.byte_id(b'!') as usize], "!");
        assert_eq!(v.tokens[v.byte_id(b' ') as usize], "Ġ");
        assert_eq!(v.byte_id(b'!'), 3);
        assert_eq!(v.tokens[v.special_id(2) as usize], "<|im_end|>");
    }
}
