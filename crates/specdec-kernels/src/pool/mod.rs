//! Own thread pool: one caller, its helpers, and tiles that anyone may claim.
//!
//! Nothing waits for a thread that does not run, except in the middle of a tile: a worker takes
//! part only once it has entered a region by itself, and the caller goes on claiming tiles until
//! none is left. So a foreign process on one core costs its share and no more. Every thread begins
//! with a share of its own, but which one runs a tile in the end is left to chance; kernels are
//! written so that no result depends on it.

mod float_env;
mod region;
mod shares;
#[cfg(test)]
mod tests;
mod word;

use std::io;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::threads::available_threads;
use region::{Shared, guarded, in_tile};
use word::MAX_THREADS;

pub(crate) use shares::part;

/// What a pool can refuse or report.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// A forked child has the pool's memory but not its threads.
    #[error(
        "the thread pool of process {owner} was used in process {here}, forked from it; \
         start workers with the spawn method, or make a new pool in the child"
    )]
    Forked {
        /// Process that made the pool.
        owner: u32,
        /// Process that used it.
        here: u32,
    },
    /// A tile panicked. Outputs of that run are unspecified; the pool still works.
    #[error("a kernel panicked: {message}")]
    Panicked {
        /// The panic's text.
        message: String,
    },
    /// The operating system refused a thread.
    #[error("thread {index} of {threads} could not be started: {source}; ask for fewer threads")]
    Spawn {
        /// Number of the thread, the caller being thread 0.
        index: usize,
        /// Threads asked for.
        threads: usize,
        /// The system's reason.
        source: io::Error,
    },
    /// No pool has this many threads.
    #[error("a pool of {threads} threads was asked for; ask for 1 to {MAX_THREADS}")]
    ThreadCount {
        /// Threads asked for, the caller included.
        threads: usize,
    },
}

/// A pool of threads, the calling one included. Several threads may share one; their runs take
/// turns. Dropping it joins its threads (in a forked child, where there are none, it leaks them).
pub struct Pool {
    shared: Arc<Shared>,
    workers: ManuallyDrop<Vec<JoinHandle<()>>>,
    /// Held by the caller of the region that runs.
    turn: Mutex<()>,
    owner: u32,
}

impl Pool {
    /// A pool of `threads` threads, 1 to 1024, the caller of `run` being one of them.
    ///
    /// # Errors
    /// `ThreadCount`, or `Spawn` when the system refuses a thread.
    pub fn new(threads: usize) -> Result<Self, PoolError> {
        if threads == 0 || threads > MAX_THREADS {
            return Err(PoolError::ThreadCount { threads });
        }
        let mut pool = Self {
            shared: Arc::new(Shared::new(threads)),
            workers: ManuallyDrop::new(Vec::with_capacity(threads - 1)),
            turn: Mutex::default(),
            owner: std::process::id(),
        };
        // With more threads than cores, whoever spins keeps a core from someone with work.
        let spin = threads <= available_threads();
        for index in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let worker = Builder::new()
                .name(format!("specdec-{index}"))
                .spawn(move || shared.serve(index, spin))
                .map_err(|source| PoolError::Spawn { index, threads, source })?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// Number of threads, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `f(tile)` once for every tile in `0..tiles` and returns when all calls are done.
    ///
    /// Tiles run on any thread, in any order, with the default floating-point environment; neighbours
    /// mostly on the same thread, and the first ones on that of the first ones in the run before. A
    /// run inside a tile is worked off in place by the thread that asked.
    ///
    /// # Errors
    /// `Panicked` when a call panicked (tiles not begun by then are left out), `Forked` in a
    /// process that did not make the pool.
    pub fn run(&self, tiles: usize, f: &(dyn Fn(usize) + Sync)) -> Result<(), PoolError> {
        let threads = self.threads();
        self.run_shares(&|thread| part(tiles, threads, thread).end, f)
    }

    /// The same with given shares: thread i, counted from 0, begins with the tiles from the end of
    /// the share before its own to `end(i)`. There are as many tiles as the last share ends at.
    ///
    /// # Errors
    /// As [`Pool::run`].
    pub(crate) fn run_shares(
        &self,
        end: &dyn Fn(usize) -> usize,
        f: &(dyn Fn(usize) + Sync),
    ) -> Result<(), PoolError> {
        let tiles = end(self.workers.len());
        let here = std::process::id();
        if here != self.owner {
            return Err(PoolError::Forked { owner: self.owner, here });
        }
        let ran = if tiles <= 1 || self.workers.is_empty() || in_tile() {
            guarded(|| (0..tiles).for_each(f))
        } else {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let wake = self.workers.iter().take(tiles - 1).map(JoinHandle::thread);
            self.shared.region(end, f, wake)
        };
        ran.map_err(|message| PoolError::Panicked { message })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // A child has no such threads to join, and their handles must not be touched.
        if std::process::id() != self.owner {
            return;
        }
        self.shared.word.stop();
        // SAFETY: the pool is being dropped; nobody uses the handles after this.
        for worker in unsafe { ManuallyDrop::take(&mut self.workers) } {
            worker.thread().unpark();
            // `serve` catches what its tiles throw, so there is no panic to report.
            let _ = worker.join();
        }
    }
}
