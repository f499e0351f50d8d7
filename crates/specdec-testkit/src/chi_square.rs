//! The chi-square test, for what cannot be enumerated.

use statrs::distribution::{ChiSquared, ContinuousCDF};

/// How far counts are from what a law predicts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChiSquare {
    /// Sum of (observed - expected)^2 / expected over the bins.
    pub statistic: f64,
    /// Bins less one, after those under 5 expected counts were merged into one.
    pub degrees: usize,
    /// Probability of a statistic at least this large under the law.
    pub p_value: f64,
    /// Total variation between the observed frequencies and the law.
    pub total_variation: f64,
}

/// Tests `counts[i]` against `probabilities[i]`.
///
/// A count where the probability is 0 makes the statistic infinite.
///
/// # Panics
/// If the two differ in length, or nothing was counted.
pub fn chi_square(counts: &[u64], probabilities: &[f64]) -> ChiSquare {
    assert_eq!(counts.len(), probabilities.len(), "one probability for each count");
    let trials = counts.iter().sum::<u64>() as f64;
    assert!(trials > 0.0, "nothing was counted");
    let mut small = (0.0, 0.0);
    let mut bins = Vec::new();
    let mut total_variation = 0.0;
    for (&count, p) in counts.iter().zip(probabilities) {
        let (observed, expected) = (count as f64, p * trials);
        total_variation += (observed - expected).abs() / trials / 2.0;
        if expected >= 5.0 || (count > 0 && *p == 0.0) {
            bins.push((observed, expected));
        } else {
            small = (small.0 + observed, small.1 + expected);
        }
    }
    if small != (0.0, 0.0) {
        bins.push(small);
    }
    let term = |(observed, expected): &(f64, f64)| (observed - expected).powi(2) / expected;
    let statistic = bins.iter().map(term).sum::<f64>();
    let degrees = bins.len() - 1;
    ChiSquare { statistic, degrees, p_value: survival(statistic, degrees), total_variation }
}

fn survival(statistic: f64, degrees: usize) -> f64 {
    match ChiSquared::new(degrees as f64) {
        Ok(law) if statistic.is_finite() => law.sf(statistic),
        _ if statistic > 0.0 => 0.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::chi_square;

    #[test]
    fn known_values() {
        // (60 - 50)^2 / 50 * 2 = 4 on one degree of freedom: p = 0.0455.
        let test = chi_square(&[60, 40], &[0.5, 0.5]);
        assert_eq!((test.statistic, test.degrees), (4.0, 1));
        assert!((test.p_value - 0.045_500_26).abs() < 1e-7, "{test:?}");
        assert!((test.total_variation - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_forbidden_outcome_is_never_a_chance() {
        assert!(chi_square(&[10_000, 1], &[1.0, 0.0]).p_value < f64::MIN_POSITIVE);
        assert!(chi_square(&[9_999, 1, 0], &[0.9999, 0.0, 0.0001]).p_value < f64::MIN_POSITIVE);
        assert!(chi_square(&[10_000, 0], &[1.0, 0.0]).p_value > 0.999);
    }

    #[test]
    fn rare_outcomes_share_a_bin() {
        assert_eq!(chi_square(&[994, 2, 2, 2], &[0.994, 0.002, 0.002, 0.002]).degrees, 1);
    }
}
