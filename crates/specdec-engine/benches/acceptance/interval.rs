//! A ratio of sums over answers, and how sure it is.

use std::fmt;

use specdec_core::rng::philox;

/// Resamples of the bootstrap.
const DRAWS: u32 = 4_000;

/// A ratio with its 90 % percentile interval.
pub(crate) struct Interval {
    ratio: f64,
    low: f64,
    high: f64,
}

impl Interval {
    /// Of the sums of both parts of `answers`, which are drawn again as wholes: the steps of one
    /// answer are not independent. Fixed numbers, so the same answers give the same ends.
    pub(crate) fn of(answers: &[(f64, f64)]) -> Self {
        let ratio = |chosen: &mut dyn Iterator<Item = usize>| {
            let sums =
                chosen.map(|i| answers[i]).fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
            sums.0 / sums.1
        };
        let pick = |draw: u32, i: u32| philox([draw, i, 0, 0], [0, 0])[0] as usize % answers.len();
        let count = answers.len() as u32;
        let mut ratios: Vec<f64> =
            (0..DRAWS).map(|draw| ratio(&mut (0..count).map(|i| pick(draw, i)))).collect();
        ratios.sort_by(f64::total_cmp);
        let tail = DRAWS as usize / 20;
        let (low, high) = (ratios[tail], ratios[ratios.len() - 1 - tail]);
        Self { ratio: ratio(&mut (0..answers.len())), low, high }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} [{:.3}, {:.3}]", self.ratio, self.low, self.high)
    }
}
