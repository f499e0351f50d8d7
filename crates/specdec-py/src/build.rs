//! How this extension was built, for bug reports and `specdec env`.

use std::collections::BTreeMap;

use pyo3::prelude::*;

/// How this extension was built: version, target and whether its own checks are on.
#[pyfunction]
pub(crate) fn build_info() -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)),
        ("debug_assertions", cfg!(debug_assertions).to_string()),
    ])
}
