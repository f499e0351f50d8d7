//! The extension module `specdec_rs._core`: extract, detach, call the engine, convert.
//!
//! Nothing is decided here. Python checks parameters (`params.py`, `speculative.py`), the engine
//! checks them again; this crate turns one into the other, lets go of the GIL while the engine
//! works, sees signals while it waits, and gives every error its Python class.

mod answer;
mod border;
mod build;
mod engine;
mod error;
mod local;
mod measure;
mod params;
mod primitives;
mod request;

use pyo3::prelude::*;

/// The compiled engine behind the Python package.
///
/// Nothing here relies on the GIL. The tests of threads run under one all the same: no registry has
/// an interpreter without it.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::build::build_info;
    #[pymodule_export]
    use crate::engine::Engine;
    #[pymodule_export]
    use crate::measure::{machine_rates, pass_costs};
    #[pymodule_export]
    use crate::primitives::{ngram, process_logits, sample, verify};
    #[pymodule_export]
    use crate::request::{ReadyQueue, Request};
}
