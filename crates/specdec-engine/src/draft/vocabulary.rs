//! Whether a draft model speaks its target's language.

use crate::error::EngineError;
use crate::load::tokenizer::{TokenKind, Tokenizer};

/// Ids that both models know by the same text: what the draft may propose. Tables may be padded to
/// different sizes, with unused tokens or with rows that are no tokens.
///
/// # Errors
/// [`EngineError::Vocabulary`] with the first id that means different things.
pub fn check_vocabulary(target: &Tokenizer, draft: &Tokenizer) -> Result<usize, EngineError> {
    let common = target.vocab_size().min(draft.vocab_size());
    let unused = |of: &Tokenizer, id| of.token_kind(id) == Some(TokenKind::Unused);
    for id in 0..target.vocab_size().max(draft.vocab_size()) as u32 {
        let (ours, theirs) = (target.token_text(id), draft.token_text(id));
        let same = match (ours, theirs) {
            (Some(a), Some(b)) => a == b || (unused(target, id) && unused(draft, id)),
            (Some(_), None) => unused(target, id),
            (None, Some(_)) => unused(draft, id),
            (None, None) => true,
        };
        if !same {
            let name = |text: Option<&str>| text.unwrap_or("no token").to_owned();
            return Err(EngineError::Vocabulary { id, target: name(ours), draft: name(theirs) });
        }
    }
    Ok(common)
}
