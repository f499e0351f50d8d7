//! The verifiers and the law on arrays of other engines: rows in, tokens out.

mod array;
mod draft;
mod law;

use pyo3::prelude::*;
use specdec_core::Method;
use specdec_core::primitives::{self, Drafted, PrimitiveError, Table, Verified};
use specdec_core::rng::Key;

use crate::error::ConfigError;

use array::{Array, Numbers};
pub(crate) use draft::ngram;
pub(crate) use law::process_logits;

/// Ascending token ids that the columns stand for, and the size of the vocabulary.
type Columns = Option<(Vec<u32>, usize)>;

/// Verify drafted tokens against rows of probabilities: the tokens, and how many were accepted.
#[pyfunction]
#[pyo3(signature = (
    target_probs, draft_probs, draft_token_ids, parents, *, method, seed, position, columns = None
))]
#[expect(clippy::too_many_arguments, clippy::needless_pass_by_value, reason = "Python's arguments")]
pub(crate) fn verify(
    py: Python<'_>,
    target_probs: Array<'_>,
    draft_probs: Array<'_>,
    draft_token_ids: Vec<i64>,
    parents: Vec<i64>,
    method: &str,
    seed: u64,
    position: usize,
    columns: Columns,
) -> PyResult<(Vec<u32>, usize)> {
    let method = match method {
        "greedy" => Method::Greedy,
        "standard" => Method::Standard,
        "block" | "traversal" => Method::Traversal,
        "coupled" => Method::Coupled,
        other => return Err(ConfigError::new_err(format!("method {other:?} is unknown"))),
    };
    let (target, draft) = (target_probs.numbers()?, draft_probs.numbers()?);
    let drafted = Drafted { token_ids: &draft_token_ids, parents: &parents };
    let verified = py.detach(|| {
        let target = table("target_probs", &target, &columns)?;
        let draft = table("draft_probs", &draft, &columns)?;
        primitives::verify(&target, &draft, drafted, method, position, Key { seed, sample: 0 })
    });
    let Verified { token_ids, num_accepted } = verified.map_err(|error| refuse(&error))?;
    Ok((token_ids, num_accepted))
}

/// A token of the law `probs` (one row), by the noise of `coupled`.
#[pyfunction]
#[pyo3(signature = (probs, *, seed, position, columns = None))]
#[expect(clippy::needless_pass_by_value, reason = "Python's arguments")]
pub(crate) fn sample(
    py: Python<'_>,
    probs: Array<'_>,
    seed: u64,
    position: usize,
    columns: Columns,
) -> PyResult<u32> {
    let rows = probs.numbers()?;
    let key = Key { seed, sample: 0 };
    py.detach(|| primitives::sample(&table("probs", &rows, &columns)?, position, key))
        .map_err(|error| refuse(&error))
}

fn table<'a>(
    name: &'static str,
    rows: &'a Numbers<'a>,
    columns: &'a Columns,
) -> Result<Table<'a>, PrimitiveError> {
    match columns {
        Some((ids, vocab)) => Table::sparse(name, rows, ids, *vocab),
        None => Ok(Table::dense(name, rows)),
    }
}

fn refuse(error: &PrimitiveError) -> PyErr {
    ConfigError::new_err(error.to_string())
}
