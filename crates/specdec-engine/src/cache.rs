//! Who owns which page of the KV cache: page accounting of one pool and of each sequence.
//!
//! A sequence's cache is a list of pages of [`PAGE`] positions. Index `i` of a sequence lives at slot
//! `pages[i / PAGE] * PAGE + i % PAGE`. The first `len` indices are *committed*: index = absolute
//! position. Behind them stands the *tail* of the step in flight, one index per row in row order,
//! where index and position differ as soon as the rows form a tree. [`SeqCache::commit`] keeps a path
//! of the tail: it says which slots must move so that index = position holds again.
//!
//! Sequences that begin alike share the full pages of that beginning ([`crate::prefix`]); a page goes
//! back when its last holder lets it go.
//!
//! Only numbers live here; the keys and values lie in the device ([`crate::ops::Ops`]).

use crate::error::EngineError;
use crate::prefix::{Prefixes, TextId};
use specdec_core::TokenId;
pub use specdec_kernels::PAGE;

/// One move of a key/value pair between slots, over all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Slot to read.
    pub from: u32,
    /// Slot to overwrite; never after `from` of a later move, so moves run in place in order.
    pub to: u32,
}

/// The pages of one store: who holds them, and which are known by their text.
#[derive(Debug)]
pub struct PagePool {
    /// Pages that hold nothing.
    free: Vec<u32>,
    /// By page: how many sequences hold it.
    holders: Vec<u32>,
    prefixes: Prefixes,
    /// Whether full pages become known by their text.
    keeps: bool,
}

/// The pages of one sequence and how much of them is committed.
#[derive(Debug, Default)]
pub struct SeqCache {
    pages: Vec<u32>,
    len: usize,
    /// Pages, from the first, that are known by their text. Others may hold them too, so nothing is
    /// written to them: they are full, and the committed part never shrinks.
    known: usize,
    /// The text of those.
    text: TextId,
}

impl PagePool {
    /// A pool of `pages` free pages. Unless it `keeps` them, pages are forgotten when their sequence
    /// ends.
    pub fn new(pages: usize, keeps: bool) -> Self {
        // Reversed, so that pages are handed out in ascending order: neighbours in memory for one
        // long sequence.
        let free = (0..pages as u32).rev().collect();
        Self { free, holders: vec![0; pages], prefixes: Prefixes::new(pages), keeps }
    }

    /// Pages in the pool, free or held.
    pub fn total(&self) -> usize {
        self.holders.len()
    }

    /// Pages that no sequence holds; some of them may be known by their text until they are needed.
    pub fn free(&self) -> usize {
        self.free.len() + self.prefixes.resting()
    }

    /// Makes room in `seq` for `rows` tail rows behind its committed part.
    ///
    /// # Errors
    /// [`EngineError::CacheFull`] when the pool has too few pages; `seq` is then unchanged.
    pub fn reserve(&mut self, seq: &mut SeqCache, rows: usize) -> Result<(), EngineError> {
        let need = pages_for(seq.len + rows).saturating_sub(seq.pages.len());
        if need > self.free() {
            return Err(EngineError::CacheFull { needed: need, free: self.free() });
        }
        for _ in 0..need {
            if let Some(page) = self.free.pop().or_else(|| self.prefixes.evict()) {
                self.holders[page as usize] = 1;
                seq.pages.push(page);
            }
        }
        Ok(())
    }

    /// Takes back the pages behind the committed part.
    pub fn trim(&mut self, seq: &mut SeqCache) {
        // From the end: of a text that nobody holds, what comes last is forgotten first, and no page
        // is known whose beginning is not.
        for page in seq.pages.drain(pages_for(seq.len)..).rev() {
            self.let_go(page);
        }
    }

    /// Takes back every page; `seq` is empty afterwards.
    pub fn release(&mut self, seq: &mut SeqCache) {
        seq.len = 0;
        self.trim(seq);
        *seq = SeqCache::default();
    }

    /// Makes the full pages of `seq`, which holds the beginning of `text`, known by it. A page that
    /// is known already takes the place of the sequence's own, which has the same bits.
    pub fn publish(&mut self, seq: &mut SeqCache, text: &[TokenId]) {
        while self.keeps && (seq.known + 1) * PAGE <= seq.len {
            let (at, tokens) = (seq.known, &text[seq.known * PAGE..]);
            if let Some((page, text)) = self.prefixes.find(seq.text, tokens) {
                self.hold(page);
                self.let_go(std::mem::replace(&mut seq.pages[at], page));
                seq.text = text;
            } else if let Some(text) = self.prefixes.add(seq.pages[at], seq.text, tokens) {
                seq.text = text;
            }
            seq.known += 1;
        }
    }

    /// Continues `seq`, which holds the beginning of `text` and no tail, with pages known by that
    /// text. The last token is left out, so that there is a row to draw from. Returns how many
    /// positions came so.
    pub fn reuse(&mut self, seq: &mut SeqCache, text: &[TokenId]) -> usize {
        let before = seq.len;
        while seq.pages.len() == seq.known
            && seq.len + PAGE < text.len()
            && let Some((page, known)) = self.prefixes.find(seq.text, &text[seq.len..])
        {
            self.hold(page);
            seq.pages.push(page);
            seq.len += PAGE;
            seq.known += 1;
            seq.text = known;
        }
        seq.len - before
    }

    fn hold(&mut self, page: u32) {
        let holders = &mut self.holders[page as usize];
        *holders += 1;
        if *holders == 1 {
            self.prefixes.wake(page);
        }
    }

    fn let_go(&mut self, page: u32) {
        let holders = &mut self.holders[page as usize];
        *holders -= 1;
        if *holders == 0 && !self.prefixes.rest(page) {
            self.free.push(page);
        }
    }
}

impl SeqCache {
    /// Committed positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is committed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Pages held, committed part and tail.
    pub fn pages(&self) -> &[u32] {
        &self.pages
    }

    /// Slot of index `index` (committed or tail).
    pub fn slot(&self, index: usize) -> u32 {
        self.pages[index / PAGE] * PAGE as u32 + (index % PAGE) as u32
    }

    /// Keeps the tail rows `path` (ascending tail indices, root to leaf) and forgets the others.
    ///
    /// The moves go from lower to higher slots' indices: entry `i` of the path is written to index
    /// `len + i`, and `path[i] >= i`, so no move overwrites a row that a later one still reads.
    pub fn commit(&mut self, path: &[usize]) -> Vec<Move> {
        let base = self.len;
        let moves = path
            .iter()
            .enumerate()
            .filter(|&(kept, &tail)| kept != tail)
            .map(|(kept, &tail)| Move { from: self.slot(base + tail), to: self.slot(base + kept) })
            .collect();
        self.len += path.len();
        moves
    }
}

/// Pages that hold `positions` positions.
pub fn pages_for(positions: usize) -> usize {
    positions.div_ceil(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq_of(pool: &mut PagePool, len: usize, tail: usize) -> SeqCache {
        let mut seq = SeqCache::default();
        pool.reserve(&mut seq, len + tail).unwrap();
        seq.commit(&(0..len).collect::<Vec<_>>());
        seq
    }

    #[test]
    fn a_chain_commits_without_moving_anything() {
        let mut pool = PagePool::new(4, true);
        let mut seq = seq_of(&mut pool, 62, 5);
        assert_eq!(seq.commit(&[0, 1, 2, 3]), []);
        assert_eq!(seq.len(), 66);
    }

    #[test]
    fn a_tree_path_moves_to_the_front_across_a_page_border() {
        let mut pool = PagePool::new(4, true);
        let mut seq = seq_of(&mut pool, 63, 6);
        let slots: Vec<u32> = (63..69).map(|i| seq.slot(i)).collect();
        let moves = seq.commit(&[0, 3, 5]);
        assert_eq!(
            moves,
            [Move { from: slots[3], to: slots[1] }, Move { from: slots[5], to: slots[2] }]
        );
        assert_eq!(seq.len(), 66);
    }

    #[test]
    fn pages_come_back_and_none_leaks() {
        let mut pool = PagePool::new(5, true);
        let mut a = seq_of(&mut pool, 60, 10);
        let mut b = seq_of(&mut pool, 130, 0);
        assert_eq!(pool.free(), 0);
        let full = pool.reserve(&mut a, 100).unwrap_err();
        assert!(matches!(full, EngineError::CacheFull { needed: 1, free: 0 }));
        assert_eq!(a.pages().len(), 2);
        pool.trim(&mut a);
        assert_eq!(pool.free(), 1);
        pool.release(&mut a);
        pool.release(&mut b);
        assert_eq!((pool.free(), pool.total()), (5, 5));
    }

    /// Tokens of a text; texts with one salt differ from all others from the first token on.
    fn text(salt: u32, len: usize) -> Vec<TokenId> {
        (0..len as u32).map(|i| salt * 1000 + i).collect()
    }

    #[test]
    fn texts_that_begin_alike_share_full_pages_and_leave_a_token_to_read() {
        let mut pool = PagePool::new(8, true);
        let text = text(1, 2 * PAGE);
        let mut a = seq_of(&mut pool, 2 * PAGE, 0);
        pool.publish(&mut a, &text);
        let mut b = SeqCache::default();
        assert_eq!(pool.reuse(&mut b, &text), PAGE);
        assert_eq!((b.pages(), b.len(), pool.free()), (&a.pages()[..1], PAGE, 6));
        // The last token's page is its own until it is full; then it is the one that stands.
        pool.reserve(&mut b, PAGE).unwrap();
        assert_ne!(b.pages(), a.pages());
        b.commit(&(0..PAGE).collect::<Vec<_>>());
        pool.publish(&mut b, &text);
        assert_eq!((b.pages(), pool.free()), (a.pages(), 6));
        pool.release(&mut a);
        assert_eq!(pool.free(), 6);
        pool.release(&mut b);
        assert_eq!(pool.free(), 8);
    }

    #[test]
    fn kept_pages_make_room_in_order_of_rest_and_from_their_ends() {
        let mut pool = PagePool::new(4, true);
        let texts = [text(1, 2 * PAGE + 1), text(2, 2 * PAGE + 1)];
        for text in &texts {
            let mut seq = seq_of(&mut pool, 2 * PAGE, 0);
            pool.publish(&mut seq, text);
            pool.release(&mut seq);
        }
        assert_eq!(pool.free(), 4);
        let mut new = seq_of(&mut pool, PAGE, 0);
        let found = texts.each_ref().map(|text| {
            let mut seq = SeqCache::default();
            let found = pool.reuse(&mut seq, text);
            pool.release(&mut seq);
            found
        });
        assert_eq!(found, [PAGE, 2 * PAGE]);
        pool.release(&mut new);
        assert_eq!(pool.free(), 4);
    }

    #[test]
    fn a_pool_that_keeps_nothing_shares_nothing() {
        let mut pool = PagePool::new(2, false);
        let mut a = seq_of(&mut pool, PAGE, 0);
        pool.publish(&mut a, &text(1, PAGE));
        assert_eq!(pool.reuse(&mut SeqCache::default(), &text(1, 2 * PAGE)), 0);
    }
}
