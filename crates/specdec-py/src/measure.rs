//! `pass_costs` and `machine_rates`: what a pass costs by its number of rows, and what the machine
//! could do at most.

use std::path::PathBuf;

use pyo3::prelude::*;
use specdec_engine::measure::{self, PassCosts, Passes, Rates, Round};
use specdec_engine::{EngineError, EngineOptions};
use specdec_kernels::{Level, UnknownLevel};

use crate::border::{in_thread, outside};

/// One round; times in milliseconds, rates per second.
#[derive(IntoPyObject)]
struct PyRound {
    read: Vec<f64>,
    multiply: f64,
    ms: Vec<f64>,
}

impl From<Round> for PyRound {
    fn from(round: Round) -> Self {
        let ms = round.passes.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        Self { read: round.read, multiply: round.multiply, ms }
    }
}

/// What passes cost and what they do.
#[derive(IntoPyObject)]
pub(crate) struct PyPassCosts {
    weight_bytes: usize,
    kv_bytes: usize,
    macs_per_row: usize,
    threads: usize,
    level: String,
    rounds: Vec<PyRound>,
}

impl From<PassCosts> for PyPassCosts {
    fn from(costs: PassCosts) -> Self {
        Self {
            weight_bytes: costs.weight_bytes,
            kv_bytes: costs.kv_bytes,
            macs_per_row: costs.macs_per_row,
            threads: costs.threads,
            level: costs.level.to_string(),
            rounds: costs.rounds.into_iter().map(Into::into).collect(),
        }
    }
}

/// Time passes of 1 to `widest` rows of a model behind `context` positions, `repeats` times each,
/// widths and probes in turns. `progress(done, total)` hears rounds.
#[pyfunction]
#[pyo3(signature = (
    model, *, context, widest, repeats, num_threads = None, level = None, progress = None
))]
#[expect(clippy::too_many_arguments, reason = "all are by name")]
pub(crate) fn pass_costs(
    py: Python<'_>,
    model: PathBuf,
    context: usize,
    widest: usize,
    repeats: usize,
    num_threads: Option<usize>,
    level: Option<&str>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyPassCosts> {
    let options = EngineOptions { num_threads, ..EngineOptions::new(model) };
    let options = outside(py, || Ok(EngineOptions { level: parse(level)?, ..options }))?;
    let passes = Passes { context, widest, repeats };
    let work = move |progress: &crate::border::Progress| {
        measure::pass_costs(&options, passes, &mut |done, total| progress.report(done, total))
    };
    in_thread(py, work, progress).map(Into::into)
}

/// Read bandwidth in bytes per second and byte products with addition per second, measured now.
#[pyfunction]
#[pyo3(signature = (*, num_threads = None, level = None))]
pub(crate) fn machine_rates(
    py: Python<'_>,
    num_threads: Option<usize>,
    level: Option<&str>,
) -> PyResult<(f64, f64)> {
    let rates = outside(py, || {
        let options = EngineOptions { num_threads, ..EngineOptions::new("") };
        measure::rates(&EngineOptions { level: parse(level)?, ..options })
    })?;
    let Rates { read, multiply } = rates;
    Ok((read, multiply))
}

/// An instruction level by its name.
pub(crate) fn parse(level: Option<&str>) -> Result<Option<Level>, EngineError> {
    let unknown = |UnknownLevel { found }| EngineError::Config {
        field: "level",
        found: format!("{found:?}"),
        expected: "scalar, avx2 or avx512".to_owned(),
    };
    level.map(|name| name.parse().map_err(unknown)).transpose()
}
