//! Rotary position embedding (Su et al. 2021, arXiv 2104.09864) and the append to the store.

mod append;
#[cfg(test)]
mod tests;

use crate::math::table::{pow, sin_cos};

pub use append::rope_append;

/// Which two numbers of a head turn together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RopeKind {
    /// 2i and 2i + 1, as GGUF stores llama.
    Pairs,
    /// i and i + d / 2.
    Halves,
}

/// The angles of one model.
pub struct Rope {
    kind: RopeKind,
    /// Radians per position, for each of the d / 2 pairs.
    turns: Vec<f64>,
}

impl Rope {
    /// Pair i of a head of `head_dim` numbers turns by base^(-2i / head_dim) a position, divided
    /// by `factors[i]` where a model has them (long contexts).
    ///
    /// # Panics
    /// If `head_dim` is odd, or there are factors but not one for each pair.
    pub fn new(kind: RopeKind, head_dim: usize, base: f32, factors: Option<&[f32]>) -> Self {
        assert!(head_dim.is_multiple_of(2), "a head of {head_dim} numbers has no pairs");
        let pairs = head_dim / 2;
        if let Some(factors) = factors {
            assert_eq!(factors.len(), pairs, "rope factors for {pairs} pairs");
        }
        let turn = |i: usize| {
            let factor = factors.map_or(1.0, |factors| f64::from(factors[i]));
            pow(f64::from(base), -((2 * i) as f64) / head_dim as f64) / factor
        };
        Self { kind, turns: (0..pairs).map(turn).collect() }
    }

    /// Fills `cos_sin` with a row for each position: the cosines of the pairs, then their sines.
    pub fn table(&self, positions: &[u32], cos_sin: &mut Vec<f32>) {
        let pairs = self.turns.len();
        cos_sin.clear();
        cos_sin.resize(positions.len() * 2 * pairs, 0.0);
        if pairs == 0 {
            return;
        }
        for (position, row) in positions.iter().zip(cos_sin.chunks_exact_mut(2 * pairs)) {
            let (cosines, sines) = row.split_at_mut(pairs);
            for ((turn, cos), sin) in self.turns.iter().zip(cosines).zip(sines) {
                let angle = sin_cos(f64::from(*position) * turn);
                (*sin, *cos) = (angle.0 as f32, angle.1 as f32);
            }
        }
    }
}

/// Turns the pairs of one head. Products and sums are rounded one by one.
#[inline(always)]
fn rotate(kind: RopeKind, head: &mut [f32], cos_sin: &[f32]) {
    let pairs = head.len() / 2;
    let angles = cos_sin[..pairs].iter().zip(&cos_sin[pairs..]);
    match kind {
        RopeKind::Pairs => {
            for ([a, b], (cos, sin)) in head.as_chunks_mut().0.iter_mut().zip(angles) {
                (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
            }
        }
        RopeKind::Halves => {
            let (low, high) = head.split_at_mut(pairs);
            for ((a, b), (cos, sin)) in low.iter_mut().zip(high).zip(angles) {
                (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
            }
        }
    }
}
