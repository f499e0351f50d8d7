//! [`Acceptor`]: the one function through which every token passes, plain or speculative.

use crate::TokenId;

/// When a request ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Tokens to emit at most.
    pub max_tokens: usize,
    /// Tokens the context still has room for.
    pub context_left: usize,
    /// The model's own end tokens.
    pub eos_token_ids: Vec<TokenId>,
    /// Whether the model's end tokens are tokens like any other.
    pub ignore_eos: bool,
    /// End tokens of the request.
    pub stop_token_ids: Vec<TokenId>,
    /// Texts that end the request; empty ones never match.
    pub stop: Vec<String>,
    /// First tokens with which no stop text can end. (Which tokens they may be is for the law.)
    pub min_tokens: usize,
    /// Whether the text of what ended the request, stop text or end token, is part of the output.
    pub include_stop: bool,
}

/// Why a request ended, in the words of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// A stop token or stop text.
    Stop,
    /// `max_tokens`, or the end of the context.
    Length,
    /// The caller went away.
    Abort,
    /// A failure while it ran.
    Error,
}

/// What stopped a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// An end token of the model or of the request.
    Token(TokenId),
    /// A text.
    Text(String),
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The reason.
    pub reason: FinishReason,
    /// What stopped it, if the reason is [`FinishReason::Stop`].
    pub stop: Option<Stop>,
}

/// Output of one request so far: its tokens, its text, and whether it has ended.
///
/// Tokens are judged one by one, so it makes no difference how many a step accepts.
#[derive(Debug, Clone)]
pub struct Acceptor {
    limits: Limits,
    token_ids: Vec<TokenId>,
    text: String,
    /// Bytes of `text` handed out by [`Acceptor::take_text`].
    taken: usize,
    finish: Option<Finish>,
}

impl Acceptor {
    /// A request that has emitted nothing.
    pub fn new(mut limits: Limits) -> Self {
        limits.stop.retain(|stop| !stop.is_empty());
        Self { limits, token_ids: Vec::new(), text: String::new(), taken: 0, finish: None }
    }

    /// Takes the next token and the text that became complete with it; how the request ended, if it
    /// did. Once it has, nothing more is taken.
    ///
    /// In this order: an end token is kept, its text is not; a stop text is cut, its tokens are
    /// kept (both texts stay with [`Limits::include_stop`]); then the limits.
    pub fn accept(&mut self, token: TokenId, piece: &str) -> Option<&Finish> {
        if self.finish.is_none() {
            self.token_ids.push(token);
            if self.is_end(token) {
                if self.limits.include_stop {
                    self.text.push_str(piece);
                }
                self.stop(Stop::Token(token));
            } else {
                self.append(piece);
            }
            if self.remaining() == 0 {
                self.close(FinishReason::Length);
            }
        }
        self.finish.as_ref()
    }

    /// Ends the request for another reason, unless it has ended already.
    pub fn close(&mut self, reason: FinishReason) {
        self.finish.get_or_insert(Finish { reason, stop: None });
    }

    /// Takes what the text decoder still held when the request ended (such as half a character).
    /// After a stop text it is dropped; a stop text that it completes counts.
    pub fn flush(&mut self, tail: &str) {
        let cut = self.finish.as_ref().is_some_and(|f| matches!(f.stop, Some(Stop::Text(_))));
        if !cut {
            self.append(tail);
        }
    }

    /// Text that can be streamed now: held back while its end may be the beginning of a stop text,
    /// all of it once the request has ended.
    pub fn take_text(&mut self) -> String {
        let held = if self.finish.is_some() { 0 } else { self.held_back() };
        let safe = self.text.len() - held;
        let text = self.text[self.taken..safe].to_owned();
        self.taken = safe;
        text
    }

    /// All tokens emitted.
    pub fn token_ids(&self) -> &[TokenId] {
        &self.token_ids
    }

    /// All of the text, without the stop text that ended it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How the request ended, once it has.
    pub fn finished(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    /// Tokens that may still be emitted before a limit ends the request.
    pub fn remaining(&self) -> usize {
        self.limits.max_tokens.min(self.limits.context_left).saturating_sub(self.token_ids.len())
    }

    fn is_end(&self, token: TokenId) -> bool {
        self.limits.stop_token_ids.contains(&token)
            || (!self.limits.ignore_eos && self.limits.eos_token_ids.contains(&token))
    }

    fn stop(&mut self, stop: Stop) {
        self.finish = Some(Finish { reason: FinishReason::Stop, stop: Some(stop) });
    }

    fn append(&mut self, piece: &str) {
        let old = self.text.len();
        self.text.push_str(piece);
        if self.token_ids.len() <= self.limits.min_tokens {
            return;
        }
        if let Some((start, stop)) = first_stop(&self.text, old, &self.limits.stop) {
            let stop = stop.to_owned();
            let kept = if self.limits.include_stop { stop.len() } else { 0 };
            self.text.truncate(start + kept);
            self.stop(Stop::Text(stop));
        }
    }

    /// Bytes at the end of the text that are the beginning of a stop text, at most.
    fn held_back(&self) -> usize {
        let beginnings = |stop: &String| {
            let longest = (stop.len() - 1).min(self.text.len());
            (1..=longest)
                .rev()
                .find(|&n| stop.is_char_boundary(n) && self.text.ends_with(&stop[..n]))
        };
        self.limits.stop.iter().filter_map(beginnings).max().unwrap_or(0)
    }
}

/// Start and text of the stop that ends first beyond `old`; the longest of those that end together.
/// So it makes no difference in which pieces the text arrives.
fn first_stop<'a>(text: &str, old: usize, stops: &'a [String]) -> Option<(usize, &'a str)> {
    let find = |stop: &'a String| {
        let earliest = (old + 1).saturating_sub(stop.len());
        let from = (earliest..=old).find(|&at| text.is_char_boundary(at))?;
        text[from..].find(stop.as_str()).map(|at| (from + at, stop.as_str()))
    };
    stops.iter().filter_map(find).min_by_key(|&(start, stop)| (start + stop.len(), start))
}
