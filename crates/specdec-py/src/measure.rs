//! `width_costs`: what a pass costs by its number of rows.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use specdec_engine::{EngineOptions, measure};

use crate::border::in_thread;

/// The cost of passes of one width, in milliseconds.
#[derive(IntoPyObject)]
pub(crate) struct PyWidthCost {
    rows: usize,
    ms: f64,
    least_ms: f64,
}

/// Time passes of 1 to `widest` rows of a model behind `context` positions, `repeats` times each,
/// the widths in turn. `ms` is the median.
#[pyfunction]
#[pyo3(signature = (model, *, context, widest, repeats, num_threads = None))]
pub(crate) fn width_costs(
    py: Python<'_>,
    model: PathBuf,
    context: usize,
    widest: usize,
    repeats: usize,
    num_threads: Option<usize>,
) -> PyResult<Vec<PyWidthCost>> {
    let options = EngineOptions { num_threads, ..EngineOptions::new(model) };
    let costs =
        in_thread(py, move |_| measure::width_costs(&options, context, widest, repeats), None)?;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let convert = |cost: measure::WidthCost| PyWidthCost {
        rows: cost.rows,
        ms: ms(cost.median),
        least_ms: ms(cost.least),
    };
    Ok(costs.into_iter().map(convert).collect())
}
