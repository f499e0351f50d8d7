//! Who owns which page of the KV cache: page accounting of one pool and of each sequence.
//!
//! A sequence's cache is a list of pages of [`PAGE`] positions. Index `i` of a sequence lives at slot
//! `pages[i / PAGE] * PAGE + i % PAGE`. The first `len` indices are *committed*: index = absolute
//! position. Behind them stands the *tail* of the step in flight, one index per row in row order,
//! where index and position differ as soon as the rows form a tree. [`SeqCache::commit`] keeps a path
//! of the tail: it says which slots must move so that index = position holds again.
//!
//! Only numbers live here; the keys and values lie in the device ([`crate::ops::Ops`]).

use crate::error::EngineError;
pub use specdec_kernels::PAGE;

/// One move of a key/value pair between slots, over all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Slot to read.
    pub from: u32,
    /// Slot to overwrite; never after `from` of a later move, so moves run in place in order.
    pub to: u32,
}

/// Pages that no sequence holds.
#[derive(Debug)]
pub struct PagePool {
    free: Vec<u32>,
    total: usize,
}

/// The pages of one sequence and how much of them is committed.
#[derive(Debug, Default)]
pub struct SeqCache {
    pages: Vec<u32>,
    len: usize,
}

impl PagePool {
    /// A pool of `pages` free pages.
    pub fn new(pages: usize) -> Self {
        // Reversed, so that pages are handed out in ascending order: neighbours in memory for one
        // long sequence.
        Self { free: (0..pages as u32).rev().collect(), total: pages }
    }

    /// Pages in the pool, free or held.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Pages that no sequence holds.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Makes room in `seq` for `rows` tail rows behind its committed part.
    ///
    /// # Errors
    /// [`EngineError::CacheFull`] when the pool has too few pages; `seq` is then unchanged.
    pub fn reserve(&mut self, seq: &mut SeqCache, rows: usize) -> Result<(), EngineError> {
        let need = pages_for(seq.len + rows).saturating_sub(seq.pages.len());
        if need > self.free.len() {
            return Err(EngineError::CacheFull { needed: need, free: self.free.len() });
        }
        seq.pages.extend(self.free.drain(self.free.len() - need..).rev());
        Ok(())
    }

    /// Takes back the pages behind the committed part.
    pub fn trim(&mut self, seq: &mut SeqCache) {
        let keep = pages_for(seq.len);
        self.free.extend(seq.pages.drain(keep..).rev());
    }

    /// Takes back every page; `seq` is empty afterwards.
    pub fn release(&mut self, seq: &mut SeqCache) {
        seq.len = 0;
        self.trim(seq);
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

    /// Forgets every committed position from `len` on. A length beyond the committed part changes
    /// nothing. Pages go back with the next [`PagePool::trim`].
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
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
        let mut pool = PagePool::new(4);
        let mut seq = seq_of(&mut pool, 62, 5);
        assert_eq!(seq.commit(&[0, 1, 2, 3]), []);
        assert_eq!(seq.len(), 66);
    }

    #[test]
    fn a_tree_path_moves_to_the_front_across_a_page_border() {
        let mut pool = PagePool::new(4);
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
        let mut pool = PagePool::new(5);
        let mut a = seq_of(&mut pool, 60, 10);
        let mut b = seq_of(&mut pool, 130, 0);
        assert_eq!(pool.free(), 0);
        let full = pool.reserve(&mut a, 100).unwrap_err();
        assert!(matches!(full, EngineError::CacheFull { needed: 1, free: 0 }));
        assert_eq!(a.pages().len(), 2);
        pool.trim(&mut a);
        assert_eq!(pool.free(), 1);
        b.truncate(64);
        pool.trim(&mut b);
        assert_eq!(pool.free(), 3);
        pool.release(&mut a);
        pool.release(&mut b);
        assert_eq!((pool.free(), pool.total()), (5, 5));
    }

    #[test]
    fn truncate_never_extends() {
        let mut pool = PagePool::new(2);
        let mut seq = seq_of(&mut pool, 10, 0);
        seq.truncate(20);
        assert_eq!(seq.len(), 10);
        seq.truncate(4);
        assert_eq!(seq.len(), 4);
    }
}
