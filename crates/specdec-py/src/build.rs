//! How this extension was built and what it found, for bug reports and `specdec env`.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use specdec_kernels::{Level, available_threads};

/// Version, target, whether own checks are on, instruction level and threads of this machine.
#[pyfunction]
pub(crate) fn build_info() -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)),
        ("debug_assertions", cfg!(debug_assertions).to_string()),
        ("simd", Level::detect().to_string()),
        ("threads", available_threads().to_string()),
    ])
}
