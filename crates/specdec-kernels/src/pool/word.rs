//! The one atomic word that coordinates a pool.
//!
//! Every transition is a read-modify-write of this word, so all of them have one total order and
//! no transition can miss another: a worker that goes to sleep and a caller that opens a region
//! cannot pass each other unseen, which two separate flags would only exclude with fences.
//!
//! `Release` on the side that hands something over and `Acquire` on the side that takes it are
//! enough: read-modify-writes continue a release sequence, so a reader that sees the word after
//! several workers left synchronises with all of them, not only with the last.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// Most threads a pool may have; far below the 14 bits that the counters have.
pub(super) const MAX_THREADS: usize = 1024;

const WORKER: u64 = 1;
const SLEEPER: u64 = 1 << 14;
const COUNT: u64 = (1 << 14) - 1;
const OPEN: u64 = 1 << 28;
const CALLER_WAITS: u64 = 1 << 29;
const STOP: u64 = 1 << 30;
const GENERATION: u64 = 1 << 32;

/// What the word said at one moment.
#[derive(Clone, Copy)]
pub(super) struct Seen(u64);

impl Seen {
    /// Number of the last region opened (mod 2^32). A worker that slept through exactly 2^32
    /// regions takes the last for one it knows, and skips it: harmless, nobody waits for it.
    pub(super) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Workers inside the region.
    pub(super) fn workers(self) -> u64 {
        self.0 & COUNT
    }

    /// Workers asleep, or past the last check before it.
    pub(super) fn sleepers(self) -> u64 {
        (self.0 / SLEEPER) & COUNT
    }

    pub(super) fn stopped(self) -> bool {
        self.0 & STOP != 0
    }

    /// Has the caller asked to be notified?
    #[cfg(test)]
    pub(super) fn caller_waits(self) -> bool {
        self.0 & CALLER_WAITS != 0
    }

    fn open(self) -> bool {
        self.0 & OPEN != 0
    }
}

/// Who is inside the region, who sleeps, and whether the region takes workers.
#[derive(Default)]
pub(super) struct Word(AtomicU64);

impl Word {
    pub(super) fn load(&self) -> Seen {
        Seen(self.0.load(Acquire))
    }

    /// Caller: publishes the job written before, under the next generation. Returns the word as
    /// it was. The carry out of the generation falls off the top.
    pub(super) fn open(&self) -> Seen {
        Seen(self.0.fetch_add(GENERATION + OPEN, AcqRel))
    }

    /// Caller: no worker enters from here on; those inside are counted in what is returned.
    pub(super) fn close(&self) -> Seen {
        Seen(self.0.fetch_sub(OPEN, AcqRel))
    }

    /// Caller, holding the lock that `leave`'s notifier takes: asks to be notified.
    pub(super) fn caller_waits(&self) {
        self.0.fetch_or(CALLER_WAITS, Relaxed);
    }

    /// Caller: the wait is over.
    pub(super) fn caller_goes_on(&self) {
        self.0.fetch_and(!CALLER_WAITS, Relaxed);
    }

    /// Worker: joins the open region unless it is `known`. Ok: its generation. Err: the word that
    /// showed no such region.
    ///
    /// If the region seen was replaced by another between the load and the exchange, the exchange
    /// fails (the generation is part of the word). `Acquire` pairs with `open`: the job is read
    /// after this.
    pub(super) fn enter(&self, known: u32) -> Result<u32, Seen> {
        let mut seen = self.load();
        while seen.open() && seen.generation() != known {
            match self.0.compare_exchange_weak(seen.0, seen.0 + WORKER, Acquire, Acquire) {
                Ok(_) => return Ok(seen.generation()),
                Err(now) => seen = Seen(now),
            }
        }
        Err(seen)
    }

    /// Worker: leaves the region; the results of its tiles go with it. True: the caller sleeps
    /// and this was the last worker, so it has to be notified.
    pub(super) fn leave(&self) -> bool {
        let before = Seen(self.0.fetch_sub(WORKER, AcqRel));
        before.workers() == 1 && before.0 & CALLER_WAITS != 0
    }

    /// Worker: is about to sleep. Returns the word as it was: if a region opened since the
    /// worker looked, it must not sleep; if none did, whoever opens the next sees the sleeper.
    pub(super) fn lie_down(&self) -> Seen {
        Seen(self.0.fetch_add(SLEEPER, AcqRel))
    }

    /// Worker: is up again.
    pub(super) fn get_up(&self) {
        self.0.fetch_sub(SLEEPER, Relaxed);
    }

    /// Owner: workers return when they see it.
    pub(super) fn stop(&self) {
        self.0.fetch_or(STOP, AcqRel);
    }
}
