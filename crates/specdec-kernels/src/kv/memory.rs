//! Zeroed memory that costs nothing until it is written.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Types whose zero bytes are a value.
///
/// # Safety
/// All bytes zero must be a valid value.
pub(crate) unsafe trait Zero: Copy {}

// SAFETY: every bit pattern is a value.
unsafe impl Zero for f32 {}
// SAFETY: every bit pattern is a value.
unsafe impl Zero for u16 {}

/// Size of a huge page on x86-64 and on most of 64-bit ARM.
const HUGE: usize = 2 << 20;

/// A zeroed array, aligned to huge pages where it is larger than one, else to a cache line.
///
/// The system gives such memory page by page when it is first written. That only holds for
/// alignments which the allocator has anyway, so ours is found inside a larger allocation.
pub(super) struct Memory<T> {
    allocated: NonNull<u8>,
    layout: Layout,
    start: NonNull<T>,
    len: usize,
}

// SAFETY: the memory is owned like a `Vec`'s.
unsafe impl<T: Send> Send for Memory<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Memory<T> {}

impl<T: Zero> Memory<T> {
    /// `len` zeros; `None` if the system has no room for them.
    pub(super) fn zeroed(len: usize) -> Option<Self> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let align = if bytes >= HUGE { HUGE } else { 64 };
        let layout = Layout::from_size_align(bytes.checked_add(align)?, 16).ok()?;
        // SAFETY: the size is at least `align`, so not zero.
        let allocated = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skip = allocated.align_offset(align);
        assert!(skip <= align, "an address cannot be aligned");
        // SAFETY: `skip + bytes` is within the allocation.
        let start: NonNull<T> = unsafe { allocated.add(skip) }.cast();
        if align == HUGE {
            advise_huge(start.cast(), bytes);
        }
        Some(Self { allocated, layout, start, len })
    }
}

/// Asks for huge pages; a system without them is only slower.
#[cfg(target_os = "linux")]
fn advise_huge(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the range is aligned to pages and our own; the advice does not change its contents.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_: NonNull<u8>, _: usize) {}

impl<T> Deref for Memory<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `start` holds `len` values, which are zero until written.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Memory<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and we hold it alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: allocated by `zeroed` with this layout.
        unsafe { dealloc(self.allocated.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_aligned_to_lines_or_huge_pages() {
        for (len, align) in [(0, 64), (5, 64), (HUGE / 4, HUGE), (HUGE, HUGE)] {
            let mut memory = Memory::<f32>::zeroed(len).unwrap();
            assert_eq!(memory.as_ptr() as usize % align, 0);
            assert!(memory.len() == len && memory.iter().all(|x| *x == 0.0));
            memory.fill(1.0);
        }
    }

    #[test]
    fn too_much_is_refused() {
        assert!(Memory::<f32>::zeroed(usize::MAX / 4).is_none());
        assert!(Memory::<f32>::zeroed(usize::MAX / 8).is_none());
    }
}
