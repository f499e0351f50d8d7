//! The one shape of work: a flat list of rows, and where each of them sits and looks.
//!
//! A [`Row`] is a token that hangs behind the committed part of its sequence or behind another row.
//! A prefill chunk is a chain of rows, a plain step one row per sequence, a verify step a tree per
//! sequence; batches are ragged. From the rows and the caches a [`Batch`] derives absolute positions,
//! cache slots and the keys that each row sees: the committed ones and its ancestors, in order of
//! absolute position. Nothing in a row's geometry depends on the other rows' presence except the
//! slots, and slots never change a result (row invariance, ARCHITECTURE.md).

use crate::cache::{PAGE, SeqCache};
use crate::error::EngineError;
use specdec_core::TokenId;
use specdec_kernels::Span;
use std::ops::Range;

/// One row of a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The token whose embedding enters.
    pub token: TokenId,
    /// Index of the sequence in the call's list of caches.
    pub seq: usize,
    /// The row it continues, numbered over all passes since the tails were empty; `None`: the
    /// committed part of its sequence.
    pub parent: Option<usize>,
    /// Whether its logits are wanted.
    pub logits: bool,
    /// Whether its hidden states are wanted.
    pub hidden: bool,
}

/// What a device needs to know about the rows of one forward pass. Reused from step to step.
///
/// A pass may go on where the last one ended, so that a tree can grow level by level: its rows may
/// hang behind those of the earlier passes, which stand in the tails of the same caches.
#[derive(Debug, Default)]
pub struct Batch {
    /// Rows of the earlier passes that this one goes on from; all lists by row hold them too.
    earlier: usize,
    tokens: Vec<TokenId>,
    positions: Vec<u32>,
    slots: Vec<u32>,
    seqs: Vec<usize>,
    logits: Vec<u32>,
    hidden: Vec<u32>,
    pages: Vec<u32>,
    page_ranges: Vec<Range<usize>>,
    linear: Vec<u32>,
    extra: Vec<u32>,
    extra_ranges: Vec<Range<usize>>,
}

/// A batch as the operations see it, with one [`Span`] per row.
pub struct Step<'a> {
    /// The rows' geometry.
    pub batch: &'a Batch,
    /// Row `i` sees the keys of `spans[i]`.
    pub spans: Vec<Span<'a>>,
    /// The same on layers with a window; empty where the model has none.
    pub windowed: Vec<Span<'a>>,
}

impl<'a> Step<'a> {
    /// What the rows see on a layer with or without a window.
    pub fn spans(&self, window: Option<usize>) -> &[Span<'a>] {
        if window.is_some() { &self.windowed } else { &self.spans }
    }
}

impl Batch {
    /// Forgets the rows of the last pass: the next one begins behind the committed parts.
    pub fn clear(&mut self) {
        self.earlier = 0;
        self.tokens.clear();
        self.positions.clear();
        self.slots.clear();
        self.seqs.clear();
        self.linear.clear();
        self.extra.clear();
        self.extra_ranges.clear();
    }

    /// Lays out `rows` behind the committed parts of `caches`, which must have room for them, and
    /// behind the rows since the last [`Batch::clear`]: parents are numbered over all of these.
    ///
    /// # Errors
    /// [`EngineError::Rows`] when a row names a parent that does not stand before it or that belongs
    /// to another sequence, or when a cache has no room reserved.
    pub fn lay_out(&mut self, rows: &[Row], caches: &[&mut SeqCache]) -> Result<(), EngineError> {
        self.earlier = self.tokens.len();
        self.logits.clear();
        self.hidden.clear();
        self.pages.clear();
        self.page_ranges.clear();
        for cache in caches {
            let start = self.pages.len();
            self.pages.extend_from_slice(cache.pages());
            self.page_ranges.push(start..self.pages.len());
        }
        let mut tail: Vec<usize> = (0..caches.len()).map(|seq| self.tail(seq)).collect();
        for (index, row) in rows.iter().enumerate() {
            let cache = caches.get(row.seq).ok_or(EngineError::Rows {
                row: index,
                reason: "names a sequence that is not in the call",
            })?;
            let at = cache.len() + tail[row.seq];
            if at >= cache.pages().len() * PAGE {
                return Err(EngineError::Rows { row: index, reason: "has no cache slot reserved" });
            }
            tail[row.seq] += 1;
            self.push(index, row, cache, at)?;
        }
        Ok(())
    }

    /// Rows of sequence `seq` since the last [`Batch::clear`].
    pub fn tail(&self, seq: usize) -> usize {
        self.seqs.iter().filter(|&&of| of == seq).count()
    }

    fn push(
        &mut self,
        index: usize,
        row: &Row,
        cache: &SeqCache,
        at: usize,
    ) -> Result<(), EngineError> {
        let slot = cache.slot(at);
        let start = self.extra.len();
        let (position, linear) = match row.parent {
            None => (cache.len(), cache.len() as u32),
            Some(parent) => {
                if parent >= self.tokens.len() || self.seqs[parent] != row.seq {
                    return Err(EngineError::Rows {
                        row: index,
                        reason: "hangs behind a row that is not before it in its sequence",
                    });
                }
                self.extra.extend_from_within(self.extra_ranges[parent].clone());
                (self.positions[parent] as usize + 1, self.linear[parent])
            }
        };
        // While index = position the keys lie where the page table says; a chain never leaves that
        // case, so only the branches of trees carry explicit slots.
        let straight = self.extra.len() == start && at == position;
        if !straight {
            self.extra.push(slot);
        }
        self.tokens.push(row.token);
        self.positions.push(position as u32);
        self.slots.push(slot);
        self.seqs.push(row.seq);
        self.linear.push(if straight { position as u32 + 1 } else { linear });
        self.extra_ranges.push(start..self.extra.len());
        if row.logits {
            self.logits.push(index as u32);
        }
        if row.hidden {
            self.hidden.push(index as u32);
        }
        Ok(())
    }

    /// The batch with its spans, for the operations of one pass. Of a `window`, a row sees so many
    /// positions, its own among them.
    pub fn step(&self, window: Option<usize>) -> Step<'_> {
        let spans: Vec<_> = (self.earlier..self.tokens.len()).map(|i| self.span(i)).collect();
        let near = |size: usize| {
            let from = |position: u32| (position as usize + 1).saturating_sub(size) as u32;
            let rows = spans.iter().zip(self.positions());
            rows.map(|(span, &position)| Span { from: from(position), ..*span }).collect()
        };
        let windowed = window.map_or_else(Vec::new, near);
        Step { batch: self, spans, windowed }
    }

    fn span(&self, row: usize) -> Span<'_> {
        Span {
            pages: &self.pages[self.page_ranges[self.seqs[row]].clone()],
            linear: self.linear[row],
            extra: &self.extra[self.extra_ranges[row].clone()],
            from: 0,
        }
    }

    /// Number of rows of this pass.
    pub fn len(&self) -> usize {
        self.tokens.len() - self.earlier
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Token of each row.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens[self.earlier..]
    }

    /// Absolute position of each row.
    pub fn positions(&self) -> &[u32] {
        &self.positions[self.earlier..]
    }

    /// Cache slot that each row's key and value go to.
    pub fn slots(&self) -> &[u32] {
        &self.slots[self.earlier..]
    }

    /// Rows whose logits are wanted, ascending.
    pub fn logits_rows(&self) -> &[u32] {
        &self.logits
    }

    /// Rows whose hidden states are wanted, ascending.
    pub fn hidden_rows(&self) -> &[u32] {
        &self.hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::PagePool;

    fn row(parent: Option<usize>) -> Row {
        Row { token: 1, seq: 0, parent, logits: false, hidden: false }
    }

    fn cache(committed: usize, tail: usize) -> SeqCache {
        let mut pool = PagePool::new(8, true);
        let mut seq = SeqCache::default();
        pool.reserve(&mut seq, committed + tail).unwrap();
        seq.commit(&(0..committed).collect::<Vec<_>>());
        seq
    }

    #[test]
    fn a_chain_needs_no_explicit_slots() {
        let mut seq = cache(62, 4);
        let rows = [row(None), row(Some(0)), row(Some(1)), row(Some(2))];
        let mut batch = Batch::default();
        batch.lay_out(&rows, &[&mut seq]).unwrap();
        let step = batch.step(None);
        assert_eq!(batch.positions(), [62, 63, 64, 65]);
        for (i, span) in step.spans.iter().enumerate() {
            assert_eq!((span.linear, span.extra), (63 + i as u32, &[][..]));
        }
    }

    #[test]
    fn a_branch_sees_its_ancestors_only_and_in_order_of_position() {
        // 0 - 1 - 2        row 3 continues row 0, row 4 continues row 3
        //  \- 3 - 4
        let mut seq = cache(10, 5);
        let rows = [row(None), row(Some(0)), row(Some(1)), row(Some(0)), row(Some(3))];
        let mut batch = Batch::default();
        batch.lay_out(&rows, &[&mut seq]).unwrap();
        assert_eq!(batch.positions(), [10, 11, 12, 11, 12]);
        let slots = batch.slots().to_vec();
        let step = batch.step(None);
        assert_eq!((step.spans[3].linear, step.spans[3].extra), (11, &[slots[3]][..]));
        assert_eq!((step.spans[4].linear, step.spans[4].extra), (11, &[slots[3], slots[4]][..]));
        assert_eq!((step.spans[2].linear, step.spans[2].extra), (13, &[][..]));
    }

    #[test]
    fn a_branch_whose_index_meets_its_position_again_stays_explicit() {
        // Row 2 continues row 1 (a second root) and lands on index 12 = position 11 + 1? It must
        // not claim that row 0's slot holds its ancestor.
        let mut seq = cache(10, 3);
        let rows = [row(None), row(None), row(Some(1))];
        let mut batch = Batch::default();
        batch.lay_out(&rows, &[&mut seq]).unwrap();
        let slots = batch.slots().to_vec();
        let step = batch.step(None);
        assert_eq!((step.spans[2].linear, step.spans[2].extra), (10, &[slots[1], slots[2]][..]));
    }

    #[test]
    fn rows_of_a_later_pass_see_their_ancestors_of_the_earlier_ones() {
        // First 0 - 1 and 0 - 2, then 3 behind 1 and 4 behind 2: all in one pass or in two.
        let rows = [row(None), row(Some(0)), row(Some(0)), row(Some(1)), row(Some(2))];
        let mut seq = cache(10, 5);
        let mut whole = Batch::default();
        whole.lay_out(&rows, &[&mut seq]).unwrap();
        let mut parts = Batch::default();
        parts.lay_out(&rows[..3], &[&mut seq]).unwrap();
        parts.lay_out(&rows[3..], &[&mut seq]).unwrap();
        assert_eq!((parts.len(), parts.tail(0)), (2, 5));
        assert_eq!(parts.positions(), &whole.positions()[3..]);
        assert_eq!(parts.slots(), &whole.slots()[3..]);
        let (whole, parts) = (whole.step(None), parts.step(None));
        for (part, whole) in parts.spans.iter().zip(&whole.spans[3..]) {
            assert_eq!((part.linear, part.extra), (whole.linear, whole.extra));
        }
    }

    #[test]
    fn parents_must_come_first_and_share_the_sequence() {
        let (mut a, mut b) = (cache(1, 2), cache(1, 2));
        let mut batch = Batch::default();
        let late = batch.lay_out(&[row(Some(0))], &[&mut a]).unwrap_err();
        assert!(matches!(late, EngineError::Rows { row: 0, .. }));
        let rows = [row(None), Row { seq: 1, ..row(Some(0)) }];
        batch.clear();
        let foreign = batch.lay_out(&rows, &[&mut a, &mut b]).unwrap_err();
        assert!(matches!(foreign, EngineError::Rows { row: 1, .. }));
    }

    #[test]
    fn a_row_without_a_reserved_slot_is_refused() {
        let mut seq = cache(64, 0);
        let full = Batch::default().lay_out(&[row(None)], &[&mut seq]).unwrap_err();
        assert!(matches!(full, EngineError::Rows { row: 0, .. }));
    }
}
