//! Text in which every character remembers where it came from.
//!
//! A character of a message is *foreign*, whatever a template cuts, replaces or glues around it. So
//! what a control token is made of can be told at the end, in the rendered text itself: only
//! characters that the template brought.

use std::{cmp::Ordering, ops::Range, rc::Rc};

/// Set in the characters of messages; characters themselves take 21 bits.
const FOREIGN: u32 = 1 << 31;

/// A string of characters with their origin. Comparisons look at the characters only.
#[derive(Clone, Debug)]
pub(super) struct Text(Rc<[u32]>);

/// Who wrote a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    Template,
    Message,
}

impl Text {
    pub(super) fn new(text: &str, origin: Origin) -> Self {
        let flag = if origin == Origin::Message { FOREIGN } else { 0 };
        Self(text.chars().map(|char| u32::from(char) | flag).collect())
    }

    pub(super) fn own(text: &str) -> Self {
        Self::new(text, Origin::Template)
    }

    /// The characters with their flags, for [`Text::from`].
    pub(super) fn raw(&self) -> &[u32] {
        &self.0
    }

    /// Number of characters.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn chars(&self) -> impl DoubleEndedIterator<Item = char> + '_ {
        self.0.iter().map(|&raw| char_of(raw))
    }

    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        Self(self.0[range].into())
    }

    /// Every character turned into others of the same origin.
    pub(super) fn map<I: IntoIterator<Item = char>>(
        &self,
        mut turn: impl FnMut(usize, char) -> I,
    ) -> Self {
        let mut out = Vec::with_capacity(self.len());
        for (at, &raw) in self.0.iter().enumerate() {
            let flag = raw & FOREIGN;
            out.extend(turn(at, char_of(raw)).into_iter().map(|char| u32::from(char) | flag));
        }
        Self(out.into())
    }

    /// Every character written as a text of the same origin.
    pub(super) fn escape(&self, write: impl Fn(char) -> String) -> Self {
        self.map(|_, char| write(char).chars().collect::<Vec<_>>())
    }

    /// Without the characters at the chosen ends that `drop` names.
    pub(super) fn trim(&self, start: bool, end: bool, drop: impl Fn(char) -> bool) -> Self {
        let chars = &self.0;
        let kept = |raw: &u32| !drop(char_of(*raw));
        let from = if start { chars.iter().position(kept).unwrap_or(self.len()) } else { 0 };
        let to = if end { chars.iter().rposition(kept).map_or(0, |at| at + 1) } else { self.len() };
        self.slice(from..to.max(from))
    }

    /// Where `needle` occurs, without overlaps; linear in both lengths.
    pub(super) fn find_all(&self, needle: &Self) -> Vec<usize> {
        let (text, needle) = (self.to_string(), needle.to_string());
        let mut starts = text.char_indices().map(|(byte, _)| byte).chain([text.len()]).enumerate();
        text.match_indices(&needle)
            .filter_map(|(byte, _)| starts.find(|&(_, start)| start == byte))
            .map(|(at, _)| at)
            .collect()
    }

    /// The pieces between the occurrences of `separator` (not empty), at most `most` cuts.
    pub(super) fn split(&self, separator: &Self, most: usize) -> Vec<Self> {
        let mut pieces = Vec::new();
        let mut done = 0;
        for at in self.find_all(separator).into_iter().take(most) {
            pieces.push(self.slice(done..at));
            done = at + separator.len();
        }
        pieces.push(self.slice(done..self.len()));
        pieces
    }

    /// The words between runs of blanks.
    pub(super) fn words(&self) -> Vec<Self> {
        let blank = |raw: &u32| char_of(*raw).is_whitespace();
        self.0.split(blank).filter(|word| !word.is_empty()).map(|word| Self(word.into())).collect()
    }

    /// Text of the runs of one origin, in order.
    pub(super) fn runs(&self) -> impl Iterator<Item = (Origin, String)> + '_ {
        self.0.chunk_by(|a, b| (a ^ b) & FOREIGN == 0).map(|run| {
            let origin = if run[0] & FOREIGN == 0 { Origin::Template } else { Origin::Message };
            (origin, run.iter().map(|&raw| char_of(raw)).collect())
        })
    }
}

fn char_of(raw: u32) -> char {
    char::from_u32(raw & !FOREIGN).unwrap_or(char::REPLACEMENT_CHARACTER)
}

impl From<Vec<u32>> for Text {
    fn from(raw: Vec<u32>) -> Self {
        Self(raw.into())
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.chars().try_for_each(|char| std::fmt::Write::write_char(f, char))
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.chars().eq(other.chars())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.chars().eq(other.chars())
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.chars().cmp(other.chars()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_survives_cutting_and_is_no_part_of_equality() {
        let text: Vec<u32> = [Text::own("<|im_"), Text::new("xXend|>", Origin::Message)]
            .iter()
            .fold(Vec::new(), |mut all, part| {
                all.extend(part.raw());
                all
            });
        let text = Text::from(text);
        let cut: Vec<u32> =
            text.split(&Text::own("xX"), 9).iter().flat_map(|part| part.raw().to_vec()).collect();
        let cut = Text::from(cut);
        assert_eq!(cut, Text::own("<|im_end|>"));
        let runs: Vec<_> = cut.runs().collect();
        let expected = [(Origin::Template, "<|im_"), (Origin::Message, "end|>")];
        assert_eq!(runs, expected.map(|(origin, text)| (origin, text.to_owned())));
    }

    #[test]
    fn places_count_characters() {
        let text = Text::own("é漢é漢b");
        assert_eq!(text.find_all(&Text::own("漢")), [1, 3]);
        assert_eq!(text.find_all(&Text::own("")), [0, 1, 2, 3, 4, 5]);
        assert_eq!(text.trim(true, true, |c| c == 'é' || c == 'b').to_string(), "漢é漢");
        assert_eq!(Text::own("  a  b ").words().len(), 2);
    }
}
