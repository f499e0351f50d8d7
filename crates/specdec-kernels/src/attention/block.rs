//! One block of 64 positions as one row sees it.

use std::ops::Range;

use super::Span;
use crate::kv::{Element, PAGE, Pages, TILE};

/// Keys and values of the positions `seen` of a block.
pub(super) struct Block<'a, E> {
    /// Offsets in the block.
    pub(super) seen: Range<usize>,
    /// For each tile that has any of them the keys; lanes outside `seen` hold anything.
    pub(super) keys: [&'a [E]; PAGE / TILE],
    /// The values in order of position from `seen.start` on, in two runs: those in the page, and
    /// those put together.
    values: [&'a [E]; 2],
    head_dim: usize,
}

impl<'a, E: Element> Block<'a, E> {
    /// Block `index` of a span, of which it sees something. Keys and values that are scattered
    /// over the store are put together in `room`, which is made large enough.
    #[inline(always)]
    pub(super) fn new(
        pages: &'a Pages<E>,
        layer: usize,
        kv_head: usize,
        span: &Span<'_>,
        index: usize,
        room: &'a mut Vec<E>,
    ) -> Self {
        let first = index * PAGE;
        let inside = |position: usize| position.clamp(first, first + PAGE) - first;
        let seen = inside(span.from as usize)..inside(span.end());
        let paged = inside(span.linear as usize);
        let linear = paged.max(seen.start);
        let d = pages.shape.head_dim;
        let mut block = Self { seen, keys: [&[]; PAGE / TILE], values: [&[]; 2], head_dim: d };
        if paged > 0 {
            let page = span.pages[index] as usize;
            let (keys, values) = pages.block(layer, page, kv_head);
            for (to, keys) in block.keys.iter_mut().zip(keys.chunks_exact(TILE * d)) {
                *to = keys;
            }
            block.values[0] = &values[block.seen.start * d..linear * d];
        }
        if linear < block.seen.end {
            let slots = &span.extra[first + linear - span.linear as usize..];
            block.put_together(pages, (layer, kv_head), linear, slots, room);
        }
        block.fill_up();
        block
    }

    /// The values that lie in the page.
    pub(super) fn page_values(&self) -> &'a [E] {
        self.values[0]
    }

    /// Puts any keys where there are none: kernels go over more tiles than are asked for.
    fn fill_up(&mut self) {
        let any = self.keys[self.seen.start / TILE];
        self.keys.iter_mut().filter(|keys| keys.is_empty()).for_each(|keys| *keys = any);
    }

    /// The values of a range of offsets, in two runs with the offset of their first one.
    #[inline(always)]
    pub(super) fn values(&self, range: Range<usize>) -> [(usize, &'a [E]); 2] {
        let d = self.head_dim;
        let middle = self.seen.start + self.values[0].len() / d;
        let split = middle.clamp(range.start, range.end);
        let (low, high) = (range.start..split, split..range.end);
        [
            (low.start, part(self.values[0], self.seen.start, low, d)),
            (high.start, part(self.values[1], middle, high, d)),
        ]
    }

    /// Copies the keys and values from offset `linear` on, whose slots are given, and the keys
    /// that share a tile with them.
    fn put_together(
        &mut self,
        pages: &Pages<E>,
        (layer, kv_head): (usize, usize),
        linear: usize,
        slots: &[u32],
        room: &'a mut Vec<E>,
    ) {
        let (shape, d, tile) = (pages.shape, pages.shape.head_dim, TILE * pages.shape.head_dim);
        if room.len() < 2 * shape.block() {
            room.resize(2 * shape.block(), E::ZERO);
        }
        let (keys, values) = room.split_at_mut(shape.block());
        let mixed = linear / TILE;
        if !linear.is_multiple_of(TILE) && !self.keys[mixed].is_empty() {
            keys[mixed * tile..][..tile].copy_from_slice(self.keys[mixed]);
        }
        for (offset, slot) in (linear..self.seen.end).zip(slots) {
            let from = shape.slot(*slot);
            let (page_keys, page_values) = pages.block(layer, from.page, kv_head);
            shape.copy_key(page_keys, from.offset, keys, offset);
            let value = &page_values[shape.value(from.offset)..][..d];
            values[shape.value(offset)..][..d].copy_from_slice(value);
        }
        let (keys, values): (&'a [E], &'a [E]) = (keys, values);
        let tiles = keys.chunks_exact(tile).enumerate().skip(mixed);
        for (t, keys) in tiles.take_while(|(t, _)| t * TILE < self.seen.end) {
            self.keys[t] = keys;
        }
        self.values[1] = &values[linear * d..self.seen.end * d];
    }
}

/// The values of `range` in a run that starts at offset `first`.
#[inline(always)]
fn part<E>(run: &[E], first: usize, range: Range<usize>, d: usize) -> &[E] {
    if range.is_empty() { &[] } else { &run[(range.start - first) * d..(range.end - first) * d] }
}
