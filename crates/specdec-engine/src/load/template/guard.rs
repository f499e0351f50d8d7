//! Keeps text from becoming a control token.
//!
//! Before rendering, a marker (a noncharacter that no message contains) goes into every control
//! token that is written out in a message, behind its first character. A control token in the
//! rendered text is then the template's own: it has no marker in it, so it is no part of one
//! message. Nor can it be put together from the edge of a text and what the template or another
//! text has beside it: the beginning of a control token at the end of a text is marked too, and
//! the end of one at its beginning; also where the template trims the text. Only a template that
//! writes the beginning and the end of a control token around a text can make one with it.

use super::error::TemplateError;
use aho_corasick::AhoCorasick;
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeSet};

/// Finds where markers must go.
#[derive(Debug)]
pub(super) struct Guard {
    /// All control tokens at once, overlapping.
    automaton: AhoCorasick,
    /// Sorted, to search for those that begin with a text.
    tokens: Vec<String>,
    /// Tokens read backwards, sorted, to search for those that end with a text.
    reversed: Vec<String>,
    longest: usize,
}

impl Guard {
    pub(super) fn new<'a>(tokens: impl Iterator<Item = &'a str>) -> Result<Self, TemplateError> {
        let mut tokens: Vec<String> = tokens.map(str::to_owned).collect();
        let mut reversed: Vec<String> = tokens.iter().map(|token| backwards(token)).collect();
        tokens.sort_unstable();
        reversed.sort_unstable();
        let automaton = AhoCorasick::new(&tokens)
            .map_err(|error| TemplateError::Vocabulary { message: error.to_string() })?;
        let longest = tokens.iter().map(String::len).max().unwrap_or(0);
        Ok(Self { automaton, tokens, reversed, longest })
    }

    /// The text with a marker in everything that is or could become part of a control token.
    pub(super) fn mark<'t>(&self, text: &'t str, marker: char) -> Cow<'t, str> {
        let mut places = self.whole(text);
        let trimmed = text.trim();
        let start = text.len() - text.trim_start().len();
        for (edge, start) in [(text, 0), (trimmed, start)] {
            places.extend(self.beginnings(edge).map(|place| start + place));
            places.extend(self.endings(edge).map(|place| start + place));
        }
        insert(text, &places, marker)
    }

    /// A name with a marker in every control token in it. Templates look fields up by name, so
    /// their edges stay; where names are printed, quotes stand around them.
    pub(super) fn mark_name<'t>(&self, name: &'t str, marker: char) -> Cow<'t, str> {
        insert(name, &self.whole(name), marker)
    }

    /// Places in control tokens that are written out.
    fn whole(&self, text: &str) -> BTreeSet<usize> {
        let found = self.automaton.find_overlapping_iter(text);
        found.map(|found| after_first(text, found.start())).collect()
    }

    /// Places in the suffixes of `text` that a control token begins with.
    fn beginnings<'t>(&'t self, text: &'t str) -> impl Iterator<Item = usize> + 't {
        let reach = text.len().saturating_sub(self.longest.saturating_sub(1));
        text.char_indices()
            .rev()
            .map(|(start, _)| start)
            .take_while(move |&start| start >= reach)
            .filter(|&start| begins_longer(&self.tokens, &text[start..]))
            .map(|start| after_first(text, start))
    }

    /// Places in the prefixes of `text` that a control token ends with.
    fn endings<'t>(&'t self, text: &'t str) -> impl Iterator<Item = usize> + 't {
        let longest = self.longest;
        text.char_indices()
            .map(|(last, char)| (last, last + char.len_utf8()))
            .take_while(move |&(_, end)| end < longest)
            .filter(|&(_, end)| begins_longer(&self.reversed, &backwards(&text[..end])))
            .map(|(last, _)| last)
    }
}

fn insert<'t>(text: &'t str, places: &BTreeSet<usize>, marker: char) -> Cow<'t, str> {
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut marked = String::with_capacity(text.len() + places.len() * marker.len_utf8());
    let mut done = 0;
    for &place in places {
        marked.push_str(&text[done..place]);
        marked.push(marker);
        done = place;
    }
    marked.push_str(&text[done..]);
    Cow::Owned(marked)
}

fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}

/// Where the character that begins at `start` ends.
fn after_first(text: &str, start: usize) -> usize {
    start + text[start..].chars().next().map_or(0, char::len_utf8)
}

/// Whether a token begins with `text` and goes on.
fn begins_longer(sorted: &[String], text: &str) -> bool {
    let next = sorted.partition_point(|token| token.as_str() <= text);
    sorted.get(next).is_some_and(|token| token.starts_with(text))
}

/// A character that none of the values contains: a noncharacter, or else one for private use.
pub(super) fn marker(values: &[&Value]) -> Option<char> {
    ('\u{fdd0}'..='\u{fdef}')
        .chain('\u{f0000}'..='\u{ffffd}')
        .find(|&candidate| !values.iter().any(|value| contains(value, candidate)))
}

fn contains(value: &Value, char: char) -> bool {
    match value {
        Value::String(text) => text.contains(char),
        Value::Array(items) => items.iter().any(|item| contains(item, char)),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains(char) || contains(value, char))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
