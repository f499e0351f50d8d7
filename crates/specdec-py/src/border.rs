//! The border between Python and the engine: no GIL beyond it, no panic across it, and no wait
//! that Ctrl-C cannot end.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::prelude::*;
use specdec_engine::EngineError;

use crate::error::to_python;

/// Longest time for which a signal stays unseen. A person does not notice 50 ms, and waking up 20
/// times a second costs nothing.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// Runs `work` without the GIL. A panic in it becomes `EngineDeadError`: pyo3's own
/// `PanicException` passes by `except Exception` and would end the caller's thread.
pub(crate) fn outside<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, EngineError> + Send,
) -> PyResult<T> {
    py.detach(|| calm(work)).map_err(|error| to_python(&error))
}

fn calm<T>(work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    outcome.unwrap_or_else(|panic| Err(EngineError::from_panic(panic.as_ref())))
}

/// Asks `poll` again and again, each time for at most [`SLICE`], and lets Python see its signals in
/// between.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    mut poll: impl FnMut() -> Result<Option<T>, EngineError> + Send,
) -> PyResult<T> {
    loop {
        if let Some(found) = outside(py, &mut poll)? {
            return Ok(found);
        }
        py.check_signals()?;
    }
}

/// How far a piece of work is, written by its thread and read by the one that waits.
#[derive(Default)]
pub(crate) struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    abandoned: AtomicBool,
}

impl Progress {
    /// Tells how far the work is. Does not return when nobody waits for it any more: a callback
    /// that returns nothing has no other way to end the work than to unwind its thread.
    pub(crate) fn report(&self, done: u64, total: u64) {
        if self.abandoned.load(Ordering::Relaxed) {
            resume_unwind(Box::new("nobody waits for it any more"));
        }
        self.total.store(total, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }
}

/// Marks the work as abandoned when the waiting ends, which does no harm after its end.
struct Abandon(Arc<Progress>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
    }
}

/// Runs long `work` on a thread of its own, so that the calling thread can see signals and call
/// `tick(done, total)` meanwhile. An exception of either ends the waiting, and the work with it.
pub(crate) fn in_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Progress) -> Result<T, EngineError> + Send + 'static,
    tick: Option<&Bound<'_, PyAny>>,
) -> PyResult<T> {
    let waiting = Abandon(Arc::default());
    let progress = Arc::clone(&waiting.0);
    let (sender, result) = bounded(1);
    let run = move || {
        // Nobody listens after an interruption; the result is dropped with its memory.
        let _ = sender.send(calm(|| work(&progress)));
    };
    let thread = std::thread::Builder::new().name("specdec-work".to_owned()).spawn(run);
    thread.map_err(|error| to_python(&EngineError::Spawn(error)))?;
    loop {
        let found = outside(py, || match result.recv_timeout(SLICE) {
            Ok(outcome) => outcome.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(EngineError::Closed),
        })?;
        if let Some(tick) = tick {
            let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
            tick.call1((read(&waiting.0.done), read(&waiting.0.total)))?;
        }
        match found {
            Some(loaded) => return Ok(loaded),
            None => py.check_signals()?,
        }
    }
}

/// Texts up to this many bytes are read at once: a few milliseconds.
const SHORT: usize = 64 << 10;

/// Runs `work` on `bytes` bytes of text; if they are many, so that Ctrl-C ends the waiting for it.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> PyResult<T> {
    if bytes <= SHORT { outside(py, work) } else { in_thread(py, move |_| work(), None) }
}
