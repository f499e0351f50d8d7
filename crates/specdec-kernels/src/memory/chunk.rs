//! One allocation whose whole huge pages are asked for as such.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// Huge pages are 2 MiB on x86-64 and on most of 64-bit ARM.
pub(super) const HUGE: usize = 2 << 20;
/// A cache line.
pub(crate) const LINE: usize = 64;

/// Memory that never moves. Pages take memory when they are first touched.
pub(super) struct Chunk {
    pub(super) start: NonNull<u8>,
    pub(super) bytes: usize,
    allocated: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a chunk owns its memory and gives no access to it by itself.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// `bytes` of memory, which start on a huge page if they fill one, else on a cache line.
    /// `None` if the system refuses.
    ///
    /// They lie inside a larger allocation of small alignment, because only for those the system
    /// hands out zeroed pages untouched; what is left at the ends is never touched.
    pub(super) fn new(bytes: usize, zeroed: bool) -> Option<Self> {
        let align = if bytes >= HUGE { HUGE } else { LINE };
        let layout = Layout::from_size_align(bytes.checked_add(align)?, 16).ok()?;
        // SAFETY: the layout is not empty.
        let allocated =
            NonNull::new(unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } })?;
        let skip = allocated.align_offset(align);
        assert!(skip <= align, "an address cannot be aligned");
        // SAFETY: `skip + bytes` is within the allocation.
        let start = unsafe { allocated.add(skip) };
        advise_huge(start, bytes / HUGE * HUGE);
        Some(Self { start, bytes, allocated, layout })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.allocated.as_ptr(), self.layout) };
    }
}

/// Asks for huge pages; a system without them is only slower.
#[cfg(target_os = "linux")]
fn advise_huge(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the range is whole pages of our own, and their contents stay.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_: NonNull<u8>, _: usize) {}
