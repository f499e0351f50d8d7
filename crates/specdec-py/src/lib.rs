//! The extension module `specdec_rs._core`: extract, detach, call the engine, convert.

mod build;

use pyo3::prelude::*;

/// The compiled engine behind the Python package.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::build::build_info;
}
