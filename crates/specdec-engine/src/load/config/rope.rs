//! How rotary angles are stretched to contexts longer than those of the first training.

/// A rule that divides the turn of each pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// As trained.
    None,
    /// All pairs turn slower by this factor (Chen et al., arXiv:2306.15595).
    Linear(f32),
    /// One divisor a pair, in the tensor `rope_freqs.weight` (Llama 3.1 in GGUF).
    Tensor,
    /// Slow pairs are stretched, fast ones are not, with a ramp between (Llama 3.1).
    Llama3 {
        /// Of the slow pairs.
        factor: f32,
        /// Pairs with fewer turns than this in the original context are slow.
        low: f32,
        /// Pairs with more turns than this are fast.
        high: f32,
        /// Positions of the original context.
        original: f32,
    },
    /// As [`RopeScaling::Llama3`] with the ramp over the pairs, and queries and keys made longer
    /// (Peng et al., arXiv:2309.00071).
    Yarn {
        /// Of the slow pairs.
        factor: f32,
        /// Positions of the original context.
        original: f32,
        /// Turns in the original context from which a pair is fast.
        beta_fast: f32,
        /// Turns up to which a pair is slow.
        beta_slow: f32,
        /// By how much rotated queries and keys are longer.
        attention: f32,
    },
}

/// How much longer `YaRN` makes rotated queries and keys, unless the model says.
pub(super) fn yarn_attention(factor: f32) -> f32 {
    if factor > 1.0 { 0.1 * factor.ln() + 1.0 } else { 1.0 }
}

impl RopeScaling {
    /// By what the turn of each pair is divided; `None`: all by 1, or by a tensor's numbers.
    pub fn divisors(&self, base: f32, head_dim: usize) -> Option<Vec<f32>> {
        let pairs = head_dim / 2;
        let turn = |pair: usize| f64::from(base).powf(-2.0 * pair as f64 / head_dim as f64);
        match *self {
            Self::None | Self::Tensor => None,
            Self::Linear(factor) => Some(vec![factor; pairs]),
            Self::Llama3 { factor, low, high, original } => {
                let rounds = |pair| f64::from(original) * turn(pair) / std::f64::consts::TAU;
                let fast = |pair| {
                    let (low, high) = (f64::from(low), f64::from(high));
                    ((rounds(pair) - low) / (high - low)).clamp(0.0, 1.0)
                };
                Some((0..pairs).map(|pair| divisor(fast(pair), factor)).collect())
            }
            Self::Yarn { factor, original, beta_fast, beta_slow, .. } => {
                // The pair that makes so many turns in the original context.
                let at = |turns: f32| {
                    let period = f64::from(original) / (f64::from(turns) * std::f64::consts::TAU);
                    head_dim as f64 * period.ln() / (2.0 * f64::from(base).ln())
                };
                let low = at(beta_fast).floor().max(0.0);
                let high = at(beta_slow).ceil().min(head_dim as f64 - 1.0).max(low + 0.001);
                let fast = |pair| 1.0 - ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
                Some((0..pairs).map(|pair| divisor(fast(pair), factor)).collect())
            }
        }
    }

    /// By what scores are multiplied: queries and keys are both longer.
    pub(super) fn score_scale(&self) -> f32 {
        match self {
            Self::Yarn { attention, .. } => attention * attention,
            _ => 1.0,
        }
    }
}

/// Of a pair that is `fast` to this degree, from 0 to 1.
fn divisor(fast: f64, factor: f32) -> f32 {
    (1.0 / ((1.0 - fast) / f64::from(factor) + fast)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llama3_stretches_slow_pairs_only() {
        let scaling = RopeScaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original: 8192.0 };
        let divisors = scaling.divisors(500_000.0, 128).unwrap();
        // Llama 3.1: the first 29 pairs are fast, from the 36th on they are slow.
        assert!(divisors[..29].iter().all(|&x| x.to_bits() == 1f32.to_bits()), "{divisors:?}");
        assert!(divisors[36..].iter().all(|&x| x.to_bits() == 8f32.to_bits()), "{divisors:?}");
        assert!(divisors[29..36].iter().all(|x| (1.0..=8.0).contains(x)));
    }

    #[test]
    fn yarn_ramps_between_two_pairs() {
        let attention = yarn_attention(4.0);
        let scaling = RopeScaling::Yarn {
            factor: 4.0,
            original: 32_768.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            attention,
        };
        let divisors = scaling.divisors(1e6, 128).unwrap();
        assert!(divisors.is_sorted());
        assert_eq!((divisors[0], divisors[63]), (1.0, 4.0));
        assert!((attention - 1.138_629).abs() < 1e-6);
    }
}
