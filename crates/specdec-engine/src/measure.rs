//! What a pass costs by its width: T(w), the number that decides whether speculation pays.

use crate::cache::SeqCache;
use crate::error::EngineError;
use crate::load::Gguf;
use crate::model::{decoder::Decoder, rows::Row};
use crate::open::{EngineOptions, load_decoder};
use std::time::{Duration, Instant};

/// The cost of passes of one width.
#[derive(Clone, Debug, PartialEq)]
pub struct WidthCost {
    /// Rows of the pass, all with logits.
    pub rows: usize,
    /// Median time of a pass.
    pub median: Duration,
    /// Shortest time of a pass.
    pub least: Duration,
}

/// Times passes of 1 to `widest` rows behind `context` committed positions, `repeats` times each.
/// Widths take turns, so that a machine whose speed drifts drifts under all of them alike.
///
/// # Errors
/// As [`crate::Engine::load`]; [`EngineError::Config`] when the rows do not fit the model's context.
pub fn width_costs(
    options: &EngineOptions,
    context: usize,
    widest: usize,
    repeats: usize,
) -> Result<Vec<WidthCost>, EngineError> {
    let file = Gguf::open(&options.model)?;
    let mut options = options.clone();
    options.max_num_seqs = options.max_num_seqs.max(widest);
    let (mut decoder, longest) = load_decoder(&options, &file, &mut |_, _| ())?;
    if widest == 0 || repeats == 0 || context + widest > longest {
        return Err(EngineError::Config {
            field: "context",
            found: format!("{context} positions and {widest} rows, {repeats} times"),
            expected: format!("at least one row and one repeat, {longest} positions in all"),
        });
    }
    let mut cache = prefilled(&mut decoder, context)?;
    let mut times = vec![Vec::with_capacity(repeats); widest];
    for repeat in 0..=repeats {
        for (index, times) in times.iter_mut().enumerate() {
            let time = pass(&mut decoder, &mut cache, index + 1)?;
            // The first round touches memory for the first time; it is not counted.
            if repeat > 0 {
                times.push(time);
            }
        }
    }
    Ok(times.into_iter().enumerate().map(|(index, times)| summary(index + 1, times)).collect())
}

/// A chain of `rows` rows; tokens that differ, so that no two rows read the same embedding.
fn chain(rows: usize, vocab: usize, logits: bool) -> Vec<Row> {
    let row = |i: usize| Row {
        token: (i * 7919 % vocab) as u32,
        seq: 0,
        parent: i.checked_sub(1),
        logits,
        hidden: false,
    };
    (0..rows).map(row).collect()
}

fn prefilled(decoder: &mut Decoder, context: usize) -> Result<SeqCache, EngineError> {
    let mut cache = SeqCache::default();
    while cache.len() < context {
        let rows = (context - cache.len()).min(decoder.limits().0);
        let rows = chain(rows, decoder.config().vocab, false);
        decoder.forward(&mut [&mut cache], &rows)?;
        decoder.commit(&mut cache, &(0..rows.len()).collect::<Vec<_>>())?;
    }
    Ok(cache)
}

fn pass(decoder: &mut Decoder, cache: &mut SeqCache, rows: usize) -> Result<Duration, EngineError> {
    let rows = chain(rows, decoder.config().vocab, true);
    let begin = Instant::now();
    decoder.forward(&mut [cache], &rows)?;
    let time = begin.elapsed();
    decoder.commit(cache, &[])?;
    Ok(time)
}

fn summary(rows: usize, mut times: Vec<Duration>) -> WidthCost {
    times.sort_unstable();
    WidthCost { rows, median: times[times.len() / 2], least: times[0] }
}
