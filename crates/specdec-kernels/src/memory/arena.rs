//! Chunks that the matrices of an engine share.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

use super::buffer::Buffer;
use super::chunk::{Chunk, HUGE, LINE};

/// Where buffers are cut off a chunk, one behind the other. A chunk goes back to the system when
/// the last buffer in it is gone; nothing is used twice, as an engine loads its weights once.
#[derive(Default)]
pub(crate) struct Arena {
    open: Mutex<Option<Open>>,
}

/// The chunk that has room left.
struct Open {
    chunk: Arc<Chunk>,
    used: usize,
}

/// Untouched memory costs nothing, so a chunk may be much larger than what comes into it.
const CHUNK: usize = 64 << 20;

impl Arena {
    /// Room for `len` values, not touched yet: the thread that writes a page gets it zeroed and
    /// near. `None` if there is no memory for them.
    pub(crate) fn room<T: Copy>(&self, len: usize) -> Option<Buffer<MaybeUninit<T>>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match open.take() {
            Some(open) if open.chunk.bytes - open.used >= bytes => open,
            _ => Open::new(bytes)?,
        };
        let (chunk, skip) = (Arc::clone(&next.chunk), next.used);
        let used = (skip + bytes).next_multiple_of(LINE).min(chunk.bytes);
        *open = Some(Open { used, ..next });
        // SAFETY: the chunk's bytes from `used` on belong to nobody, and `used` is behind them now.
        Some(unsafe { Buffer::inside(chunk, skip, len) })
    }
}

impl Open {
    fn new(bytes: usize) -> Option<Open> {
        let chunk = Chunk::new(bytes.max(CHUNK).checked_next_multiple_of(HUGE)?, false)?;
        Some(Open { chunk: Arc::new(chunk), used: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_keep_apart() {
        let arena = Arena::default();
        let lens = [0, 1, 1000, 3, (3 << 20) / 8, CHUNK / 8 + 1, 7];
        let mut buffers = Vec::new();
        for (seed, len) in lens.into_iter().enumerate() {
            let mut room = arena.room::<u64>(len).expect("some MiB");
            assert_eq!(room.as_ptr() as usize % LINE, 0);
            for (i, value) in room.iter_mut().enumerate() {
                value.write((i + seed) as u64);
            }
            // SAFETY: all written above.
            buffers.push(unsafe { room.assume_init() });
        }
        drop(arena);
        for (seed, buffer) in buffers.iter().enumerate() {
            assert_eq!((buffer.len(), buffer.bytes()), (lens[seed], lens[seed] * 8));
            assert!(buffer.iter().enumerate().all(|(i, &value)| value == (i + seed) as u64));
        }
    }

    #[test]
    fn small_buffers_share_a_chunk() {
        let arena = Arena::default();
        let (a, b) = (arena.room::<u8>(10).unwrap(), arena.room::<u8>(10).unwrap());
        assert_eq!(b.as_ptr() as usize - a.as_ptr() as usize, LINE);
    }

    #[test]
    fn no_memory_is_no_panic() {
        let arena = Arena::default();
        assert!(arena.room::<u64>(usize::MAX / 4).is_none());
        assert!(arena.room::<u64>(usize::MAX / 8 - 64).is_none());
        assert!(arena.room::<u64>(5).is_some());
    }
}
