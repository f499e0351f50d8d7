//! Memory for packed weights: aligned to cache lines, on huge pages where they pay.

use std::alloc::{Layout, alloc, dealloc};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// An array that never moves.
pub(crate) struct Buffer<T: Copy> {
    start: NonNull<T>,
    len: usize,
    layout: Layout,
}

// SAFETY: the buffer owns its memory, as a `Vec` does.
unsafe impl<T: Copy + Send> Send for Buffer<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for Buffer<T> {}

/// Huge pages are 2 MiB on x86-64 and on most of 64-bit ARM.
const HUGE: usize = 2 << 20;

impl<T: Copy> Buffer<MaybeUninit<T>> {
    /// Room for `len` values, not touched yet: the thread that writes a page gets it zeroed and
    /// near. `None` if there is no memory for them.
    pub(crate) fn uninit(len: usize) -> Option<Self> {
        let layout = layout(len.checked_mul(size_of::<T>())?)?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc(layout) })?;
        advise_huge(start, layout);
        Some(Buffer { start: start.cast(), len, layout })
    }

    /// # Safety
    /// Every value must have been written.
    pub(crate) unsafe fn assume_init(self) -> Buffer<T> {
        let this = ManuallyDrop::new(self);
        Buffer { start: this.start.cast(), len: this.len, layout: this.layout }
    }
}

impl<T: Copy> Buffer<T> {
    /// Bytes taken from the system.
    pub(crate) fn bytes(&self) -> usize {
        self.layout.size()
    }
}

/// Large arrays begin and end with a huge page, so that all of their pages can be huge.
fn layout(bytes: usize) -> Option<Layout> {
    let align = if bytes >= HUGE { HUGE } else { 64 };
    Layout::from_size_align(bytes.max(1).checked_next_multiple_of(align)?, align).ok()
}

/// Asks for huge pages; a system without them is only slower.
#[cfg(target_os = "linux")]
fn advise_huge(start: NonNull<u8>, layout: Layout) {
    if layout.align() == HUGE {
        // SAFETY: the range is the fresh allocation, whole pages of it.
        unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_: NonNull<u8>, _: Layout) {}

impl<T: Copy> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; `Copy` values need no drop.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) };
    }
}

impl<T: Copy> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` values that the buffer owns.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `len` values that the buffer owns, borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_arrays_are_aligned_and_hold_what_was_written() {
        for len in [0, 1, 1000, (3 << 20) / 8] {
            let mut room = Buffer::<MaybeUninit<u64>>::uninit(len).expect("a few MiB");
            for (i, value) in room.iter_mut().enumerate() {
                value.write(i as u64);
            }
            // SAFETY: all written above.
            let buffer = unsafe { room.assume_init() };
            assert_eq!(buffer.as_ptr() as usize % 64, 0);
            assert!(buffer.bytes() >= len * 8);
            assert!(buffer.iter().enumerate().all(|(i, &value)| value == i as u64));
        }
    }

    #[test]
    fn no_memory_is_no_panic() {
        assert!(Buffer::<MaybeUninit<u64>>::uninit(usize::MAX / 4).is_none());
        assert!(Buffer::<MaybeUninit<u64>>::uninit(usize::MAX / 8 - 64).is_none());
    }
}
