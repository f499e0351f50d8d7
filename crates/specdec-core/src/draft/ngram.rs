//! Prompt lookup (Saxena 2023): what followed the last time this was said?

use super::{Ask, Budget, DraftError, Drafter};
use crate::{DraftTree, Origin, ParameterError, TokenId};

/// Proposes what followed earlier occurrences of the context's last tokens.
///
/// The rule. An *occurrence* is a place e < length at which the context's last m tokens also end,
/// m being at most `max`. Occurrences with m >= `min` are tried longest m first, the most recent e
/// first among equal m. The continuation of e copies on from there, and where it reaches the end of
/// the context it goes on with its own tokens (as LZ77 copies), so periodic text is continued for
/// as long as the budget allows. The first `branching` different continuations are merged into one
/// tree; a shared beginning is one path. Nodes are given out level by level, in that order within a
/// level, so a small budget is shared and the first continuation does not take it all.
///
/// The work is linear in the length of the context.
#[derive(Debug, Clone)]
pub struct Ngram {
    min: usize,
    max: usize,
    branching: usize,
    lengths: Vec<usize>,
}

impl Ngram {
    /// Matches of `min` to `max` tokens (1 <= `min` <= `max`), `branching` >= 1 continuations.
    ///
    /// # Errors
    /// Names the parameter that is out of range, in vLLM's words.
    pub fn new(min: usize, max: usize, branching: usize) -> Result<Self, ParameterError> {
        let error = |name, found: usize, expected| {
            Err(ParameterError::new(name, found.to_string(), expected))
        };
        if min == 0 {
            return error("prompt_lookup_min", min, "at least 1");
        }
        if max < min {
            return error("prompt_lookup_max", max, "at least prompt_lookup_min");
        }
        if branching == 0 {
            return error("branching_factor", branching, "at least 1");
        }
        Ok(Self { min, max, branching, lengths: Vec::new() })
    }

    /// Ends of the occurrences, in the order of the rule.
    fn occurrences(&mut self, context: &[TokenId]) -> Vec<usize> {
        common_suffixes(context, &mut self.lengths);
        let longest = |end: usize| self.lengths[end].min(self.max);
        // Buckets by match length: two passes, however many matches there are.
        let mut starts = vec![0; self.max.min(context.len()) + 2];
        let ends = || (1..context.len()).rev().filter(|&end| longest(end) >= self.min);
        ends().for_each(|end| starts[longest(end)] += 1);
        let mut total = 0;
        for start in starts.iter_mut().rev() {
            (*start, total) = (total, total + *start);
        }
        let mut sorted = vec![0; total];
        for end in ends() {
            let slot = &mut starts[longest(end)];
            sorted[*slot] = end;
            *slot += 1;
        }
        sorted
    }

    /// The first `branching` occurrences whose continuations differ within `depth` tokens.
    fn continuations(&mut self, context: &[TokenId], depth: usize) -> Vec<usize> {
        let mut chosen: Vec<usize> = Vec::new();
        if depth == 0 {
            return chosen;
        }
        let same = |a: usize, b: usize| {
            (0..depth).all(|i| continued(context, a, i) == continued(context, b, i))
        };
        for end in self.occurrences(context) {
            if chosen.len() == self.branching {
                break;
            }
            if !chosen.iter().any(|&other| same(other, end)) {
                chosen.push(end);
            }
        }
        chosen
    }

    /// Extends `tree` by what followed earlier occurrences of the end of `context`.
    pub fn extend(&mut self, context: &[TokenId], budget: Budget, tree: &mut DraftTree) {
        let ends = self.continuations(context, budget.depth);
        let mut last = vec![None; ends.len()];
        for level in 0..budget.depth {
            for (last, &end) in last.iter_mut().zip(&ends) {
                let token = continued(context, end, level);
                *last = match tree.child_with(*last, token) {
                    Some(child) => Some(child),
                    None if tree.len() >= budget.nodes => return,
                    None => match tree.push(*last, token, Origin::Deterministic) {
                        Ok(child) => Some(child),
                        Err(_) => return,
                    },
                };
            }
        }
    }
}

impl Drafter for Ngram {
    fn propose(&mut self, asks: &mut [Ask<'_>]) -> Result<(), DraftError> {
        for ask in asks {
            if ask.prediction.is_empty() {
                self.extend(ask.context, ask.budget, &mut ask.tree);
            } else {
                // As if the prediction had been said before everything else.
                let text = [ask.prediction, ask.context].concat();
                self.extend(&text, ask.budget, &mut ask.tree);
            }
        }
        Ok(())
    }

    fn commit(&mut self, _id: u64, _path: &[usize]) -> Result<(), DraftError> {
        Ok(())
    }

    fn release(&mut self, _id: u64) {}
}

/// Token `i` of the continuation from `end`.
fn continued(context: &[TokenId], end: usize, i: usize) -> TokenId {
    context[end + i % (context.len() - end)]
}

/// `lengths[end]` = how many tokens the context's beginnings `..end` and the whole context have in
/// common at their ends: the Z-function of the reversed context, in linear time.
fn common_suffixes(context: &[TokenId], lengths: &mut Vec<usize>) {
    let n = context.len();
    lengths.clear();
    lengths.resize(n + 1, 0);
    // [low, high): the match that reaches furthest to the left so far, as offsets from the end.
    let (mut low, mut high) = (0, 0);
    for shift in 1..n {
        let mut common = 0;
        if shift < high {
            common = lengths[n - (shift - low)].min(high - shift);
        }
        while shift + common < n && context[n - 1 - shift - common] == context[n - 1 - common] {
            common += 1;
        }
        lengths[n - shift] = common;
        if shift + common > high {
            (low, high) = (shift, shift + common);
        }
    }
}
