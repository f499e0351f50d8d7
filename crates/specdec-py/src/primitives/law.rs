//! From a row of logits to the law of the next token.

use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use specdec_core::primitives::Rows;
use specdec_core::{History, Law, LawError, Processors, Sampling, Scratch};
use specdec_kernels::SimdRows;

use super::array::Array;
use crate::error::{ConfigError, LogitsError};
use crate::params::PySamplingParams;

/// The law of the token that follows prompt and output, as the bytes of V float64.
#[pyfunction]
#[pyo3(signature = (
    logits, params, *, prompt_token_ids, output_token_ids, eos_token_ids, bad_words
))]
#[expect(clippy::needless_pass_by_value, reason = "Python's arguments")]
pub(crate) fn process_logits<'py>(
    py: Python<'py>,
    logits: Array<'py>,
    params: PySamplingParams,
    prompt_token_ids: Vec<u32>,
    output_token_ids: Vec<u32>,
    eos_token_ids: Vec<u32>,
    bad_words: Vec<Vec<u32>>,
) -> PyResult<Bound<'py, PyByteArray>> {
    let numbers = logits.numbers()?;
    let vocab = numbers.width();
    let mut end_token_ids = eos_token_ids;
    end_token_ids.extend(params.stop_token_ids.iter().flatten());
    let processors = Processors::new(&Sampling { end_token_ids, bad_words, ..params.law() }, vocab)
        .map_err(|error| ConfigError::new_err(error.to_string()))?;
    let law = py.detach(|| {
        let mut history = History::new(&prompt_token_ids);
        for &token in &output_token_ids {
            history.push(token);
        }
        let mut values = Vec::new();
        numbers.read(0, &mut values);
        let row: Vec<f32> = values.into_iter().map(|x| x as f32).collect();
        let mut law = Law::one_hot(0);
        let (mut ops, mut scratch) = (SimdRows::default(), Scratch::default());
        processors.law(&row, history.then(&[]), &mut ops, &mut scratch, &mut law).map(|()| law)
    });
    let law = law.map_err(|error: LawError| LogitsError::new_err(error.to_string()))?;
    PyByteArray::new_with(py, vocab * size_of::<f64>(), |bytes| {
        let (places, _) = bytes.as_chunks_mut();
        for (token, weight) in law.iter() {
            places[token as usize] = (weight / law.total()).to_ne_bytes();
        }
        Ok(())
    })
}
