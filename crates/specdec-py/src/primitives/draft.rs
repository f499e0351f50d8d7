//! Drafts from the text so far, for engines that verify them themselves.

use pyo3::prelude::*;
use specdec_core::{Budget, DraftTree, Ngram};

use crate::error::ConfigError;

/// Up to `count` tokens that followed the last occurrence of the end of `context`.
#[pyfunction]
#[pyo3(signature = (context, *, prompt_lookup_min, prompt_lookup_max, count))]
#[expect(clippy::needless_pass_by_value, reason = "a Python list has no slice to lend")]
pub(crate) fn ngram(
    py: Python<'_>,
    context: Vec<u32>,
    prompt_lookup_min: usize,
    prompt_lookup_max: usize,
    count: usize,
) -> PyResult<Vec<u32>> {
    let mut drafter = Ngram::new(prompt_lookup_min, prompt_lookup_max, 1)
        .map_err(|error| ConfigError::new_err(error.to_string()))?;
    Ok(py.detach(|| {
        let mut tree = DraftTree::new();
        drafter.extend(&context, Budget { nodes: count, depth: count }, &mut tree);
        (0..tree.len()).map(|node| tree.token(node)).collect()
    }))
}
