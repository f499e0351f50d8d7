//! Text to words, the units that merges never cross. Which characters make a word is part of the
//! model: it was trained on words cut this way.
//!
//! The published patterns end in `\s+(?!\S)|\s+`: a run of blanks leaves its last one to the word
//! that follows. We match `\s+` and give the last blank back by hand, so the pattern needs no
//! look-ahead and runs in linear time on any text.

use regex::Regex;

/// Values of `tokenizer.ggml.pre` that are known.
pub(super) const NAMES: [&str; 6] = ["gpt-2", "smollm", "qwen2", "llama-bpe", "llama3", "llama-v3"];

/// GPT-2; numbers of any length.
const GPT2: &str = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";
/// `SmolLM`: each digit is cut out first, then as GPT-2.
const SMOLLM: &str = r"\p{N}|'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+";
/// Qwen2: each digit alone, line ends apart from other blanks.
const QWEN2: &str = concat!(
    r"(?i:'(?:s|t|re|ve|m|ll|d))|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
/// Llama 3: up to three digits together, else as Qwen2.
const LLAMA3: &str = concat!(
    r"(?i:'(?:s|t|re|ve|m|ll|d))|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);

/// Family of word patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Gpt2,
    SmolLm,
    Qwen2,
    Llama3,
}

/// Cuts text into words.
#[derive(Debug)]
pub(super) struct Splitter {
    style: Style,
    pattern: Regex,
}

impl Splitter {
    pub(super) fn gpt2() -> Self {
        Self::new(Style::Gpt2)
    }

    /// The splitter of a `tokenizer.ggml.pre`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(Self::new(match name {
            "gpt-2" => Style::Gpt2,
            "smollm" => Style::SmolLm,
            "qwen2" => Style::Qwen2,
            "llama-bpe" | "llama3" | "llama-v3" => Style::Llama3,
            _ => return None,
        }))
    }

    fn new(style: Style) -> Self {
        let pattern = match style {
            Style::Gpt2 => GPT2,
            Style::SmolLm => SMOLLM,
            Style::Qwen2 => QWEN2,
            Style::Llama3 => LLAMA3,
        };
        let pattern = Regex::new(&format!("^(?:{pattern})")).expect("the pattern is a constant");
        Self { style, pattern }
    }

    /// Whether prompts begin with the token that begins a sequence, unless the file says.
    pub(super) fn begins_with_bos(&self) -> bool {
        self.style == Style::Llama3
    }

    /// Whether a word that is a token is taken whole.
    pub(super) fn whole_words_first(&self) -> bool {
        self.style == Style::Llama3
    }

    /// The words of a text: they tile it.
    pub(super) fn words<'t>(&self, mut text: &'t str) -> impl Iterator<Item = &'t str> {
        std::iter::from_fn(move || {
            if text.is_empty() {
                return None;
            }
            // Every character is a letter, a number, a blank or something else, and each of the
            // four can begin a word.
            let end = self.pattern.find(text).map_or(text.len(), |word| word.end());
            let (word, rest) = text.split_at(self.give_back(end, text));
            text = rest;
            Some(word)
        })
    }

    /// Where the word that the pattern ends at `end` really ends: before its last blank if it is
    /// two or more blanks in front of a word that could take one.
    fn give_back(&self, end: usize, text: &str) -> usize {
        let (word, rest) = text.split_at(end);
        let (Some(last), Some(next)) = (word.chars().next_back(), rest.chars().next()) else {
            return end;
        };
        let keeps = match self.style {
            Style::Gpt2 => false,
            Style::SmolLm => next.is_numeric(),
            Style::Qwen2 | Style::Llama3 => matches!(last, '\r' | '\n'),
        };
        let shorter = end - last.len_utf8();
        if keeps || !last.is_whitespace() || shorter == 0 { end } else { shorter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
        Splitter::from_name(name).expect("known").words(text).collect()
    }

    #[test]
    fn every_name_has_a_splitter() {
        assert!(NAMES.iter().all(|name| Splitter::from_name(name).is_some()));
        assert!(Splitter::from_name("default").is_none());
    }

    #[test]
    fn the_last_blank_of_a_run_goes_to_the_next_word() {
        for name in NAMES {
            assert_eq!(words(name, "a   b"), ["a", "  ", " b"], "{name}");
            assert_eq!(words(name, "a b  "), ["a", " b", "  "], "{name}");
            assert_eq!(words(name, " \t!"), [" ", "\t", "!"], "{name}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(words("gpt-2", "a 12  345"), ["a", " 12", " ", " 345"]);
        assert_eq!(words("smollm", "a 12  345"), ["a", " ", "1", "2", "  ", "3", "4", "5"]);
        assert_eq!(words("qwen2", "a 12  34"), ["a", " ", "1", "2", " ", " ", "3", "4"]);
        assert_eq!(words("llama3", "12345"), ["123", "45"]);
    }

    #[test]
    fn line_ends() {
        assert_eq!(words("gpt-2", "a\n\n b"), ["a", "\n\n", " b"]);
        assert_eq!(words("qwen2", "a \n\n  b"), ["a", " \n\n", " ", " b"]);
        assert_eq!(words("qwen2", "!\n\nx\r\n"), ["!\n\n", "x", "\r\n"]);
    }

    #[test]
    fn contractions() {
        assert_eq!(words("gpt-2", "it's IT'S"), ["it", "'s", " IT", "'", "S"]);
        assert_eq!(words("qwen2", "it's IT'S"), ["it", "'s", " IT", "'S"]);
    }

    #[test]
    fn words_tile_the_text() {
        let text = "e\u{301}\u{200d}🏳️‍🌈 \u{a0}\u{3000}\u{85}مرحبا १२ ²½ \0\u{fffd}\u{10ffff}";
        for name in NAMES {
            assert_eq!(words(name, text).concat(), text, "{name}");
        }
    }
}
