//! `Request`: an answer under way. `ReadyQueue`: news of many.

use pyo3::prelude::*;
use specdec_engine::{self as core, EngineError, Event, Notifier, RequestHandle};

use crate::answer::PyStep;
use crate::border::{SLICE, outside, wait};
use crate::error::to_python;
use crate::local::Local;

/// An answer under way. Whoever drops it cancels it.
#[pyclass(frozen, module = "specdec_rs._core")]
pub(crate) struct Request(Local<RequestHandle>);

impl From<RequestHandle> for Request {
    fn from(handle: RequestHandle) -> Self {
        Self(Local::new(handle))
    }
}

fn step(event: Event) -> Result<PyStep, EngineError> {
    match event {
        Event::Chunk(chunk) => Ok(PyStep::new(chunk, None)),
        Event::Done(chunk, end) => Ok(PyStep::new(chunk, Some(*end))),
        Event::Failed(error) => Err(error),
    }
}

#[pymethods]
impl Request {
    /// Number of the request, unique in its engine.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }

    /// Wait for the next step of the answer; the last one has an `end`, and nothing follows it.
    fn next(&self, py: Python<'_>) -> PyResult<PyStep> {
        wait(py, || self.0.recv_timeout(SLICE)?.map(step).transpose())
    }

    /// The next step of the answer if it is there.
    fn poll(&self) -> PyResult<Option<PyStep>> {
        let found = self.0.try_recv().and_then(|event| event.map(step).transpose());
        found.map_err(|error| to_python(&error))
    }

    /// Give the place to others and drop the request at the engine's next step; whoever waits for
    /// it gets `RequestAborted`.
    fn cancel(&self) {
        self.0.cancel();
    }
}

/// Where the requests of one caller announce that there is a step to take.
#[pyclass(frozen, module = "specdec_rs._core")]
pub(crate) struct ReadyQueue(Local<core::ReadyQueue>);

impl ReadyQueue {
    pub(crate) fn notifier(&self, tag: u64) -> Notifier {
        self.0.notifier(tag)
    }
}

#[pymethods]
impl ReadyQueue {
    #[new]
    fn new() -> Self {
        Self(Local::new(core::ReadyQueue::default()))
    }

    /// Wait for the tags of requests that have something to take; none after `close`. Signal
    /// handlers do not run meanwhile: this is for a thread of its own.
    fn wait(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        outside(py, || Ok(self.0.wait()))
    }

    /// End the waiting. Nothing in a child made by fork, where nobody waits.
    fn close(&self) {
        if self.0.is_home() {
            self.0.close();
        }
    }
}
