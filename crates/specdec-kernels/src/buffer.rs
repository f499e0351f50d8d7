//! Memory for weights and caches: aligned to cache lines, on huge pages where they pay.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// An array that never moves.
///
/// A large one begins and ends with a huge page, so that all of its pages can be huge. It lies
/// inside a larger allocation of small alignment, because the system hands out zeroed pages
/// untouched only for those; what is left at the ends is never touched.
pub(crate) struct Buffer<T> {
    start: NonNull<T>,
    len: usize,
    allocated: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer owns its memory, as a `Vec` does.
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

/// Huge pages are 2 MiB on x86-64 and on most of 64-bit ARM.
const HUGE: usize = 2 << 20;

impl<T: Zero> Buffer<T> {
    /// `len` zeros, which take memory page by page as they are written. `None` if there is none.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        // SAFETY: the layout is not empty.
        Self::place(len, |layout| unsafe { alloc_zeroed(layout) })
    }
}

impl<T: Copy> Buffer<MaybeUninit<T>> {
    /// Room for `len` values, not touched yet: the thread that writes a page gets it zeroed and
    /// near. `None` if there is no memory for them.
    pub(crate) fn uninit(len: usize) -> Option<Self> {
        // SAFETY: the layout is not empty.
        Self::place(len, |layout| unsafe { alloc(layout) })
    }

    /// # Safety
    /// Every value must have been written.
    pub(crate) unsafe fn assume_init(self) -> Buffer<T> {
        let Buffer { start, len, allocated, layout } = *ManuallyDrop::new(self);
        Buffer { start: start.cast(), len, allocated, layout }
    }
}

impl<T: Copy> Buffer<T> {
    /// `len` values, aligned inside what `allocate` returns for a layout that is not empty.
    fn place(len: usize, allocate: impl FnOnce(Layout) -> *mut u8) -> Option<Self> {
        let bytes = padded(len.checked_mul(size_of::<T>())?)?;
        let align = alignment(bytes);
        let layout = Layout::from_size_align(bytes.checked_add(align)?, 16).ok()?;
        let allocated = NonNull::new(allocate(layout))?;
        let skip = allocated.align_offset(align);
        assert!(skip <= align, "an address cannot be aligned");
        // SAFETY: `skip + bytes` is within the allocation.
        let start = unsafe { allocated.add(skip) };
        if align == HUGE {
            advise_huge(start, bytes);
        }
        Some(Self { start: start.cast(), len, allocated, layout })
    }

    /// Bytes that its values take, and the rest of the last line or huge page.
    pub(crate) fn bytes(&self) -> usize {
        padded(size_of_val(&self[..])).expect("was allocated")
    }
}

/// Huge pages for arrays larger than one, lines for others.
fn alignment(bytes: usize) -> usize {
    if bytes >= HUGE { HUGE } else { 64 }
}

/// Whole lines or huge pages.
fn padded(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(alignment(bytes))
}

/// Asks for huge pages; a system without them is only slower.
#[cfg(target_os = "linux")]
fn advise_huge(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the range is whole pages of our own, and their contents stay.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_: NonNull<u8>, _: usize) {}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; `Copy` values need no drop.
        unsafe { dealloc(self.allocated.as_ptr(), self.layout) };
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` values that the buffer owns.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Buffer<T> {
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
    fn zeros_are_aligned_to_lines_or_huge_pages() {
        for (len, align) in [(0, 64), (5, 64), (HUGE / 4, HUGE), (HUGE, HUGE)] {
            let mut buffer = Buffer::<f32>::zeroed(len).expect("a few MiB");
            assert_eq!(buffer.as_ptr() as usize % align, 0);
            assert!(buffer.len() == len && buffer.iter().all(|x| *x == 0.0));
            buffer.fill(1.0);
        }
    }

    #[test]
    fn no_memory_is_no_panic() {
        assert!(Buffer::<f32>::zeroed(usize::MAX / 8).is_none());
        assert!(Buffer::<MaybeUninit<u64>>::uninit(usize::MAX / 4).is_none());
        assert!(Buffer::<MaybeUninit<u64>>::uninit(usize::MAX / 8 - 64).is_none());
    }
}
