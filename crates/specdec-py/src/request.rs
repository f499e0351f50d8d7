//! `Request`: an answer under way.

use pyo3::prelude::*;
use specdec_engine::{Event, RequestHandle};

use crate::answer::PyStep;
use crate::border::{SLICE, wait};
use crate::local::Local;

/// An answer under way. Whoever drops it cancels it.
#[pyclass(frozen, module = "specdec_rs._core")]
pub(crate) struct Request(Local<RequestHandle>);

impl From<RequestHandle> for Request {
    fn from(handle: RequestHandle) -> Self {
        Self(Local::new(handle))
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
        wait(py, || {
            Ok(match self.0.recv_timeout(SLICE)? {
                None => None,
                Some(Event::Chunk(chunk)) => Some(PyStep::new(chunk, None)),
                Some(Event::Done(chunk, end)) => Some(PyStep::new(chunk, Some(*end))),
                Some(Event::Failed(error)) => return Err(error),
            })
        })
    }

    /// Drop the request at the engine's next step; whoever waits for it gets `RequestAborted`.
    fn cancel(&self) {
        self.0.cancel();
    }
}
