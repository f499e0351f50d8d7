//! Full pages known by the text that they hold, so that what begins alike is read once.
//!
//! Keys and values of a position depend on the tokens up to it and on nothing else (row
//! invariance), so a page that is full and committed serves every text with the same beginning. A
//! page's name is the text before it and its own tokens. The text before it is a number that was
//! given to one text and to no other, so by induction equal names mean equal texts: tokens are
//! compared, no hash is trusted.

use specdec_core::TokenId;
use specdec_kernels::PAGE;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A text of whole pages; 0 is the empty one. No number is given twice.
pub(crate) type TextId = u64;

/// The text before a page, and the page's own tokens.
type Name = (TextId, [TokenId; PAGE]);

/// Pages by their names, and which of them nobody holds.
#[derive(Debug)]
pub(crate) struct Prefixes {
    pages: HashMap<Arc<Name>, (u32, TextId)>,
    /// By page: its name, and since when nobody holds it.
    names: Vec<Option<Arc<Name>>>,
    resting_since: Vec<u64>,
    /// Pages that nobody holds, longest first.
    resting: BTreeMap<u64, u32>,
    next_text: TextId,
    clock: u64,
}

impl Prefixes {
    /// Of a pool of `pages` pages none is known.
    pub(crate) fn new(pages: usize) -> Self {
        Self {
            pages: HashMap::new(),
            names: vec![None; pages],
            resting_since: vec![0; pages],
            resting: BTreeMap::new(),
            next_text: 1,
            clock: 0,
        }
    }

    /// The page that continues `before` with the first [`PAGE`] of `tokens`, and the text that it
    /// ends.
    pub(crate) fn find(&self, before: TextId, tokens: &[TokenId]) -> Option<(u32, TextId)> {
        self.pages.get(&name(before, tokens)?).copied()
    }

    /// Makes `page` known under a name that no page has; the text that it ends.
    pub(crate) fn add(&mut self, page: u32, before: TextId, tokens: &[TokenId]) -> Option<TextId> {
        let name = Arc::new(name(before, tokens)?);
        let text = self.next_text;
        self.next_text += 1;
        self.names[page as usize] = Some(Arc::clone(&name));
        self.pages.insert(name, (page, text));
        Some(text)
    }

    /// Nobody holds `page` any more. Returns whether it is known and rests until it is needed.
    pub(crate) fn rest(&mut self, page: u32) -> bool {
        let known = self.names[page as usize].is_some();
        if known {
            self.clock += 1;
            self.resting_since[page as usize] = self.clock;
            self.resting.insert(self.clock, page);
        }
        known
    }

    /// Somebody holds `page` again.
    pub(crate) fn wake(&mut self, page: u32) {
        self.resting.remove(&self.resting_since[page as usize]);
    }

    /// Forgets the page that has rested longest and returns it.
    pub(crate) fn evict(&mut self) -> Option<u32> {
        let (_, page) = self.resting.pop_first()?;
        if let Some(name) = self.names[page as usize].take() {
            self.pages.remove(&name);
        }
        Some(page)
    }

    /// Pages that rest.
    pub(crate) fn resting(&self) -> usize {
        self.resting.len()
    }
}

/// None where the tokens do not fill a page.
fn name(before: TextId, tokens: &[TokenId]) -> Option<Name> {
    Some((before, *tokens.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(token: TokenId) -> [TokenId; PAGE] {
        [token; PAGE]
    }

    #[test]
    fn a_page_is_found_behind_its_own_text_only() {
        let mut prefixes = Prefixes::new(4);
        let a = prefixes.add(0, 0, &page(1)).unwrap();
        let ab = prefixes.add(1, a, &page(2)).unwrap();
        let b = prefixes.add(2, 0, &page(2)).unwrap();
        assert_eq!(prefixes.find(0, &page(1)), Some((0, a)));
        assert_eq!(prefixes.find(a, &page(2)), Some((1, ab)));
        assert_eq!(prefixes.find(0, &page(2)), Some((2, b)));
        assert_eq!(prefixes.find(b, &page(2)), None);
        let mut other = page(1);
        other[PAGE - 1] = 9;
        assert_eq!(prefixes.find(0, &other), None);
        assert_eq!(prefixes.find(0, &page(1)[1..]), None);
    }

    #[test]
    fn what_has_rested_longest_goes_first_and_what_is_held_stays() {
        let mut prefixes = Prefixes::new(4);
        for token in 0..3 {
            prefixes.add(token, 0, &page(token)).unwrap();
            assert!(prefixes.rest(token));
        }
        assert!(!prefixes.rest(3));
        prefixes.wake(0);
        assert_eq!((prefixes.resting(), prefixes.evict()), (2, Some(1)));
        assert!(prefixes.rest(0));
        assert_eq!(
            [prefixes.evict(), prefixes.evict(), prefixes.evict()],
            [Some(2), Some(0), None]
        );
        assert_eq!(prefixes.find(0, &page(0)), None);
    }

    #[test]
    fn a_text_that_was_forgotten_gets_another_number() {
        let mut prefixes = Prefixes::new(2);
        let first = prefixes.add(0, 0, &page(1)).unwrap();
        prefixes.rest(0);
        prefixes.evict();
        let again = prefixes.add(1, 0, &page(1)).unwrap();
        assert_ne!(first, again);
    }
}
