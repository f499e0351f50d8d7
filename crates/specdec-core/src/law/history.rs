//! What was said before: the only state that processors have.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::TokenId;

/// The committed tokens of one answer, as the processors see them.
///
/// It grows through [`History::push`] alone, token by token, for accepted tokens only. Drafted ones
/// are laid over it by [`History::then`] and leave nothing behind, so a rejected token cannot leak.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Tokens of the prompt, ascending, each once; shared by the n answers to it.
    prompt: Arc<[TokenId]>,
    output: Vec<TokenId>,
    /// How often each token of the output occurs in it.
    counts: BTreeMap<TokenId, u32>,
}

impl History {
    /// Nothing but a prompt.
    pub fn new(prompt: &[TokenId]) -> Self {
        let mut seen = prompt.to_vec();
        seen.sort_unstable();
        seen.dedup();
        Self { prompt: seen.into(), ..Self::default() }
    }

    /// Commits one token of the output.
    pub fn push(&mut self, token: TokenId) {
        self.output.push(token);
        *self.counts.entry(token).or_insert(0) += 1;
    }

    /// Number of committed tokens of the output.
    pub fn output_len(&self) -> usize {
        self.output.len()
    }

    /// The text after this history and `path`, drafted tokens that are not committed.
    pub fn then<'a>(&'a self, path: &'a [TokenId]) -> Prefix<'a> {
        Prefix { history: self, path }
    }
}

/// Everything before one token: committed text, then a path of drafted tokens.
#[derive(Debug, Clone, Copy)]
pub struct Prefix<'a> {
    history: &'a History,
    path: &'a [TokenId],
}

impl Prefix<'_> {
    /// Tokens of the output, drafted ones included.
    pub(super) fn output_len(&self) -> usize {
        self.history.output.len() + self.path.len()
    }

    /// Whether the output, drafted tokens included, ends with `tokens`.
    pub(super) fn ends_with(&self, tokens: &[TokenId]) -> bool {
        let backwards = self.path.iter().rev().chain(self.history.output.iter().rev());
        tokens.len() <= self.output_len() && tokens.iter().rev().eq(backwards.take(tokens.len()))
    }

    /// Tokens of the prompt, ascending, each once.
    pub(super) fn prompt(&self) -> &[TokenId] {
        &self.history.prompt
    }

    /// Every token of the output, drafted ones included, and how often it occurs there.
    pub(super) fn counts(&self) -> impl Iterator<Item = (TokenId, u32)> {
        let drafted = |token| self.path.iter().filter(|&&other| other == token).count() as u32;
        let committed = &self.history.counts;
        let old = committed.iter().map(move |(&token, &count)| (token, count + drafted(token)));
        let new = self.path.iter().enumerate().filter_map(move |(i, &token)| {
            let first = !committed.contains_key(&token) && !self.path[..i].contains(&token);
            first.then(|| (token, drafted(token)))
        });
        old.chain(new)
    }
}
