//! The pages of a store, for one type of number.

use super::element::Element;
use super::{PAGE, TILE};
use crate::disjoint::Disjoint;
use crate::memory::Buffer;

/// Keys and values of all layers: layer, page, kv head, then the keys and the values of that head.
pub(crate) struct Pages<E> {
    numbers: Buffer<E>,
    pub(crate) shape: Shape,
}

/// Sizes of a store, and where things are in it.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) layers: usize,
    pub(crate) pages: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
}

/// A page and a position in it.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) page: usize,
    pub(crate) offset: usize,
}

impl Shape {
    /// Numbers in the keys, and in the values, of one kv head of a page.
    pub(crate) fn block(self) -> usize {
        PAGE * self.head_dim
    }

    /// Numbers of all; `None` if they cannot be counted.
    pub(super) fn len(self) -> Option<usize> {
        let sizes = [self.layers, self.pages, self.kv_heads, self.head_dim];
        sizes.iter().try_fold(2 * PAGE, |len, size| len.checked_mul(*size))
    }

    /// Where the keys of a kv head start; its values follow.
    fn start(self, layer: usize, page: usize, head: usize) -> usize {
        assert!(layer < self.layers, "layer {layer} is outside a store of {}", self.layers);
        assert!(page < self.pages, "page {page} is outside a store of {}", self.pages);
        ((layer * self.pages + page) * self.kv_heads + head) * 2 * self.block()
    }

    /// Where number 0 of a key is in the block of keys; the next number is `TILE` further on.
    pub(crate) fn key(self, offset: usize) -> usize {
        offset / TILE * TILE * self.head_dim + offset % TILE
    }

    /// Where a value starts in the block of values.
    pub(crate) fn value(self, offset: usize) -> usize {
        offset * self.head_dim
    }

    /// A slot taken apart.
    pub(crate) fn slot(self, slot: u32) -> Slot {
        let (page, offset) = (slot as usize / PAGE, slot as usize % PAGE);
        assert!(page < self.pages, "slot {slot} is outside a store of {} pages", self.pages);
        Slot { page, offset }
    }
}

impl<E: Element> Pages<E> {
    /// All zero; `None` without memory for it.
    pub(super) fn new(shape: Shape) -> Option<Self> {
        Some(Self { numbers: Buffer::zeroed(shape.len()?)?, shape })
    }

    pub(super) fn bytes(&self) -> usize {
        self.numbers.bytes()
    }

    /// Keys and values of one kv head of one page.
    #[inline]
    pub(crate) fn block(&self, layer: usize, page: usize, head: usize) -> (&[E], &[E]) {
        self.both(layer, page, head).split_at(self.shape.block())
    }

    /// The same as one slice.
    #[inline]
    pub(crate) fn both(&self, layer: usize, page: usize, head: usize) -> &[E] {
        let start = self.shape.start(layer, page, head);
        &self.numbers[start..][..2 * self.shape.block()]
    }

    fn block_mut(&mut self, layer: usize, page: usize, head: usize) -> (&mut [E], &mut [E]) {
        let (start, len) = (self.shape.start(layer, page, head), self.shape.block());
        self.numbers[start..][..2 * len].split_at_mut(len)
    }

    /// All blocks, to be written by several threads.
    pub(crate) fn split(&mut self) -> Blocks<'_, E> {
        Blocks { shape: self.shape, numbers: Disjoint::new(&mut self.numbers) }
    }

    pub(super) fn copy_slot(&mut self, from: u32, to: u32) {
        let (shape, mut row) = (self.shape, [E::ZERO; 2 * 256]);
        let (from, to) = (shape.slot(from), shape.slot(to));
        let (key, value) = row[..2 * shape.head_dim].split_at_mut(shape.head_dim);
        for layer in 0..shape.layers {
            for head in 0..shape.kv_heads {
                let (keys, values) = self.block(layer, from.page, head);
                shape.read_key(keys, from.offset, key);
                value.copy_from_slice(&values[shape.value(from.offset)..][..shape.head_dim]);
                let (keys, values) = self.block_mut(layer, to.page, head);
                shape.write_key(keys, to.offset, key);
                values[shape.value(to.offset)..][..shape.head_dim].copy_from_slice(value);
            }
        }
    }

    pub(super) fn slot_bytes(&self, layer: usize, slot: u32) -> Vec<u8> {
        let (shape, slot) = (self.shape, self.shape.slot(slot));
        let blocks = || (0..shape.kv_heads).map(|head| self.block(layer, slot.page, head));
        let mut key = vec![E::ZERO; shape.head_dim];
        let mut bytes = Vec::new();
        for (keys, _) in blocks() {
            shape.read_key(keys, slot.offset, &mut key);
            for number in &key {
                number.push_bytes(&mut bytes);
            }
        }
        for (_, values) in blocks() {
            let value = &values[shape.value(slot.offset)..][..shape.head_dim];
            for number in value {
                number.push_bytes(&mut bytes);
            }
        }
        bytes
    }
}

impl Shape {
    /// Gathers a key from its tile.
    pub(crate) fn read_key<E: Element>(self, keys: &[E], offset: usize, key: &mut [E]) {
        let column = keys[self.key(offset)..].iter().step_by(TILE);
        key.iter_mut().zip(column).for_each(|(to, from)| *to = *from);
    }

    /// Copies a key from one block to another.
    pub(crate) fn copy_key<E: Element>(self, from: &[E], at: usize, to: &mut [E], to_at: usize) {
        let (from, to) = (from[self.key(at)..].iter(), to[self.key(to_at)..].iter_mut());
        let numbers = to.step_by(TILE).zip(from.step_by(TILE)).take(self.head_dim);
        numbers.for_each(|(to, from)| *to = *from);
    }

    /// Scatters a key into its tile.
    pub(crate) fn write_key<E: Element>(self, keys: &mut [E], offset: usize, key: &[E]) {
        let column = keys[self.key(offset)..].iter_mut().step_by(TILE);
        column.zip(key).for_each(|(to, from)| *to = *from);
    }
}

/// Blocks that are handed out one by one.
pub(crate) struct Blocks<'a, E> {
    pub(crate) shape: Shape,
    numbers: Disjoint<'a, E>,
}

impl<E: Element> Blocks<'_, E> {
    /// Keys and values of one kv head of one page.
    ///
    /// # Safety
    /// A block may be held only once at a time.
    #[expect(clippy::mut_from_ref, reason = "disjointness is the caller's promise")]
    pub(crate) unsafe fn block(
        &self,
        layer: usize,
        page: usize,
        head: usize,
    ) -> (&mut [E], &mut [E]) {
        let (start, len) = (self.shape.start(layer, page, head), self.shape.block());
        // SAFETY: blocks do not overlap, and the caller holds this one once.
        unsafe { self.numbers.part(start..start + 2 * len) }.split_at_mut(len)
    }
}
