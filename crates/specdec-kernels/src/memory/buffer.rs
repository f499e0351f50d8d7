//! An array inside a chunk.

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use super::chunk::{Chunk, LINE};

/// An array that starts on a cache line and never moves.
pub(crate) struct Buffer<T> {
    start: NonNull<T>,
    len: usize,
    chunk: Arc<Chunk>,
}

// SAFETY: the buffer alone uses its part of the chunk, as a `Vec` does its memory.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Buffer<T> {}

/// Numbers whose zero bytes are a value.
///
/// # Safety
/// All bytes zero must be a valid value.
pub(crate) unsafe trait Zero: Copy {}

// SAFETY: every bit pattern is a value.
unsafe impl Zero for f32 {}
// SAFETY: every bit pattern is a value.
unsafe impl Zero for u16 {}

impl<T: Zero> Buffer<T> {
    /// `len` zeros, which take memory page by page as they are written. `None` if there is none.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        let chunk = Chunk::new(len.checked_mul(size_of::<T>())?, true)?;
        Some(Self { start: chunk.start.cast(), len, chunk: Arc::new(chunk) })
    }
}

impl<T: Copy> Buffer<MaybeUninit<T>> {
    /// Room for `len` values `skip` bytes into a chunk.
    ///
    /// # Safety
    /// No other buffer may use these bytes of the chunk.
    pub(super) unsafe fn inside(chunk: Arc<Chunk>, skip: usize, len: usize) -> Self {
        assert!(align_of::<T>() <= LINE && skip.is_multiple_of(LINE), "alignment");
        assert!(skip + len * size_of::<T>() <= chunk.bytes, "outside the chunk");
        // SAFETY: within the chunk.
        let start = unsafe { chunk.start.add(skip) };
        Self { start: start.cast(), len, chunk }
    }

    /// # Safety
    /// Every value must have been written.
    pub(crate) unsafe fn assume_init(self) -> Buffer<T> {
        Buffer { start: self.start.cast(), len: self.len, chunk: self.chunk }
    }
}

impl<T> Buffer<T> {
    /// Bytes that its values take.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self[..])
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` values that only this buffer uses.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `len` values that only this buffer uses, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunk::HUGE;
    use super::*;

    #[test]
    fn zeros_are_aligned_to_lines_or_huge_pages() {
        for (len, align) in [(0, 64), (5, 64), (HUGE / 4, HUGE), (HUGE, HUGE)] {
            let mut buffer = Buffer::<f32>::zeroed(len).expect("a few MiB");
            assert_eq!(buffer.as_ptr() as usize % align, 0);
            assert!(buffer.len() == len && buffer.iter().all(|x| *x == 0.0));
            assert_eq!(buffer.bytes(), len * 4);
            buffer.fill(1.0);
        }
    }

    #[test]
    fn no_memory_is_no_panic() {
        assert!(Buffer::<f32>::zeroed(usize::MAX / 8).is_none());
        assert!(Buffer::<f32>::zeroed(usize::MAX / 2).is_none());
    }
}
