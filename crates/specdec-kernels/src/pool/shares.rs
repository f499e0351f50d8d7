//! Who claims which tiles: each thread its own share first, then what others have left.
//!
//! Shares follow the order of threads, and tiles that of the data. So a thread reads long runs of
//! weights, the same ones in every forward, and what it wrote in the region before. Compared with
//! one counter for all, two Zen 5 cores with a third-level cache each take 8 % less for a row of
//! Qwen2.5 1.5B and 5 to 10 % less for SmolLM2; with one cache in common, 3 % less.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The tiles of a region, a share for each thread.
pub(super) struct Shares(Box<[Share]>);

/// Tiles that follow each other. Each share, hit once per tile, has its own cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Share {
    next: AtomicUsize,
    end: AtomicUsize,
}

impl Shares {
    /// A share for each of `threads` threads, nothing in them.
    pub(super) fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| Share::default()).collect())
    }

    /// Gives thread i the tiles from the end of the share before its own to `end(i)`. Only while
    /// nobody claims: what opens a region publishes this.
    pub(super) fn deal(&self, end: &dyn Fn(usize) -> usize) {
        let mut start = 0;
        for (thread, share) in self.0.iter().enumerate() {
            let end = end(thread).max(start);
            share.next.store(start, Relaxed);
            share.end.store(end, Relaxed);
            start = end;
        }
    }

    /// Tiles for `thread`, until none is left to anyone.
    pub(super) fn claims(&self, thread: usize) -> impl Iterator<Item = usize> {
        let (before, from) = self.0.split_at(thread);
        from.iter().chain(before).flat_map(|share| std::iter::from_fn(|| share.claim()))
    }

    /// Leaves nothing to claim.
    pub(super) fn drop_all(&self) {
        for share in &self.0 {
            share.next.store(share.end.load(Relaxed), Relaxed);
        }
    }
}

impl Share {
    /// The order of the counter alone makes each claim unique. An empty share is only read, so
    /// that threads that look for work do not take its line from each other.
    fn claim(&self) -> Option<usize> {
        let end = self.end.load(Relaxed);
        let left = self.next.load(Relaxed) < end;
        left.then(|| self.next.fetch_add(1, Relaxed)).filter(|tile| *tile < end)
    }
}

/// Part `i` of `all` things in order, cut into `parts` as equal as can be, the larger ones first.
pub(crate) fn part(all: usize, parts: usize, i: usize) -> Range<usize> {
    let start = |i: usize| i * (all / parts) + i.min(all % parts);
    start(i)..start(i + 1)
}
