//! One region of work: a function, its tiles, and who is inside.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::float_env::DefaultFloatEnv;
use super::shares::Shares;
use super::word::Word;

/// How long anyone waits awake. The regions of a forward follow each other within microseconds;
/// on shared cores a longer wait takes the core from whoever has work.
const SPIN: Duration = Duration::from_micros(50);

/// Pauses between two looks at the clock: about a microsecond.
const PAUSES: u32 = 32;

thread_local! {
    /// Is this thread inside a tile? A region opened there is worked off in place.
    static IN_TILE: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn in_tile() -> bool {
    IN_TILE.get()
}

/// The function of the open region, its lifetime erased.
type Job = *const (dyn Fn(usize) + Sync);

/// What caller and workers share.
pub(super) struct Shared {
    pub(super) word: Word,
    job: UnsafeCell<Option<Job>>,
    shares: Shares,
    /// Message of the first panic in the region.
    panic: Mutex<Option<String>>,
    /// Where the caller sleeps when a worker takes long over its last tile.
    finish: (Mutex<()>, Condvar),
}

// SAFETY: everything but `job` is Sync by itself. `job` is written by the caller alone, before it
// opens a region and after the region before it was closed and empty; workers read it only inside
// a region. `Word`'s orderings put the write before the reads, and the reads before the next write.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is only followed inside its region, while the function it points to
// is borrowed by `region`; that function is `Sync`, so any thread may call it.
unsafe impl Send for Shared {}

impl Shared {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            word: Word::default(),
            job: UnsafeCell::default(),
            shares: Shares::new(threads),
            panic: Mutex::default(),
            finish: (Mutex::default(), Condvar::default()),
        }
    }

    /// Caller, thread 0: runs all tiles, of which thread i has a share that ends at `end(i)`, with
    /// the help of workers that come in time; `wake` those that sleep. At most one caller at a
    /// time. `Err` holds the message of the first panic.
    pub(super) fn region<'a>(
        &self,
        end: &dyn Fn(usize) -> usize,
        f: &(dyn Fn(usize) + Sync),
        wake: impl Iterator<Item = &'a Thread>,
    ) -> Result<(), String> {
        let erased = std::ptr::from_ref(f);
        #[expect(clippy::transmute_ptr_to_ptr, reason = "a cast cannot lengthen the lifetime")]
        // SAFETY: only the lifetime changes. The pointer is followed by threads inside this
        // region, and this function does not return, or unwind, before all have left.
        let job: Job = unsafe { std::mem::transmute(erased) };
        // SAFETY: we are the only caller and no region is open, so nobody reads `job`.
        unsafe { *self.job.get() = Some(job) };
        self.shares.deal(end);
        if self.word.open().sleepers() > 0 {
            wake.for_each(Thread::unpark);
        }
        self.drain(job, 0);
        if self.word.close().workers() > 0 {
            self.wait_for_workers();
        }
        lock(&self.panic).take().map_or(Ok(()), Err)
    }

    /// Worker: serves regions, as thread number `thread`, until the pool stops.
    pub(super) fn serve(&self, thread: usize, spin: bool) {
        // No region has generation 0 before the count wraps.
        let mut known = 0;
        while let Some(generation) = self.await_region(known, spin) {
            known = generation;
            // SAFETY: we are inside the region; see `Sync`.
            if let Some(job) = unsafe { *self.job.get() } {
                self.drain(job, thread);
            }
            if self.word.leave() {
                // The caller holds the lock from its last look at the word until it sleeps.
                drop(lock(&self.finish.0));
                self.finish.1.notify_all();
            }
        }
    }

    /// Worker: enters the next region after `known`; `None` when the pool stops.
    fn await_region(&self, mut known: u32, spin: bool) -> Option<u32> {
        loop {
            if spin {
                spin_until(|| {
                    let seen = self.word.load();
                    seen.stopped() || seen.generation() != known
                });
            }
            match self.word.enter(known) {
                Ok(generation) => return Some(generation),
                Err(seen) if seen.stopped() => return None,
                Err(seen) if seen.generation() == known => self.sleep(known),
                // Came and went without us.
                Err(seen) => known = seen.generation(),
            }
        }
    }

    /// Worker: sleeps until a region after `known` opens or the pool stops, or for no reason.
    fn sleep(&self, known: u32) {
        let before = self.word.lie_down();
        if !before.stopped() && before.generation() == known {
            std::thread::park();
        }
        self.word.get_up();
    }

    /// Caller: waits until every worker inside has left. Each is in the middle of a tile that it
    /// claimed; if one is not running, our core is better given up for it than spun on.
    fn wait_for_workers(&self) {
        if spin_until(|| self.word.load().workers() == 0) {
            return;
        }
        let mut guard = lock(&self.finish.0);
        self.word.caller_waits();
        while self.word.load().workers() > 0 {
            guard = self.finish.1.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.word.caller_goes_on();
    }

    /// Claims and runs tiles until there are none. What they read was published by `Word::open`.
    fn drain(&self, job: Job, thread: usize) {
        let ran = guarded(|| {
            for tile in self.shares.claims(thread) {
                // SAFETY: we are inside the region, so the function is still borrowed by its caller.
                unsafe { (*job)(tile) };
            }
        });
        if let Err(message) = ran {
            self.shares.drop_all();
            lock(&self.panic).get_or_insert(message);
        }
    }
}

/// Runs tiles in the default floating-point environment; a panic becomes its message.
pub(super) fn guarded(tiles: impl FnOnce()) -> Result<(), String> {
    let outside = IN_TILE.replace(true);
    // What a panic leaves half-done is the kernel's output, which the caller gives up on error.
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let _env = DefaultFloatEnv::enter();
        tiles();
    }));
    IN_TILE.set(outside);
    ran.map_err(message)
}

fn message(payload: Box<dyn Any + Send>) -> String {
    let payload = match payload.downcast::<String>() {
        Ok(text) => return *text,
        Err(payload) => payload,
    };
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    // Its drop is foreign code that could panic again, outside any guard.
    std::mem::forget(payload);
    "a panic without text".to_owned()
}

/// True as soon as `done`, false after `SPIN`.
fn spin_until(done: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..PAUSES {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() >= SPIN {
            return false;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
