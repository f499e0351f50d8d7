//! Numbers that depend on (seed, name, index) only, so that a tensor does not change when another
//! one is added, and files are the same on every machine (integer operations and one product).

/// Weyl increment of `SplitMix64`: 2^64 / golden ratio, odd.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A counter-based stream of random numbers: the outputs of `SplitMix64` (Steele, Lea, Flood 2014)
/// addressed by index.
#[derive(Clone, Debug)]
pub struct Noise {
    key: u64,
}

impl Noise {
    /// The stream called `name` under `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        let mut key = mix(seed.wrapping_add(GOLDEN));
        for byte in name.bytes() {
            key = mix(key ^ u64::from(byte)).wrapping_add(GOLDEN);
        }
        Self { key }
    }

    /// 64 uniform bits at `index`.
    pub fn bits(&self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_mul(GOLDEN)))
    }

    /// Uniform in [0, 1) with 24 bits, exact in f32.
    pub fn unit(&self, index: u64) -> f32 {
        (self.bits(index) >> 40) as f32 / (1_u32 << 24) as f32
    }

    /// Uniform integer in `0..n`, by multiply and shift (n is far below 2^32: bias < 2^-20).
    pub fn below(&self, index: u64, n: u32) -> u32 {
        (((self.bits(index) >> 32) * u64::from(n)) >> 32) as u32
    }

    /// Bell-shaped with mean 0, deviation 1 and no value beyond sqrt(12): the sum of four uniform
    /// numbers. No logarithm or cosine, whose last bits differ between platforms.
    pub fn normal(&self, index: u64) -> f32 {
        let bits = self.bits(index);
        let sum: i64 = (0..4).map(|i| ((bits >> (16 * i)) & 0xFFFF) as i64).sum();
        // Mean of the sum of four values of 0..=65535, variance 4 * (2^32 - 1) / 12.
        let centred = (2 * sum - 4 * 65_535) as f32 / 2.0;
        centred * (1.732_050_8 / 65_536.0)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_streams() {
        let noise = Noise::new(1, "a");
        let n = 40_000;
        let xs: Vec<f64> = (0..n).map(|i| f64::from(noise.normal(i))).collect();
        let mean = xs.iter().sum::<f64>() / n as f64;
        let variance = xs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        // Five standard errors: 1/sqrt(n) of the mean, about 1/sqrt(n) of the variance.
        assert!(mean.abs() < 0.025, "{mean}");
        assert!((variance - 1.0).abs() < 0.025, "{variance}");
        assert_ne!(noise.bits(0), Noise::new(1, "b").bits(0));
        assert_ne!(noise.bits(0), Noise::new(2, "a").bits(0));
        assert!((0..1000).all(|i| noise.below(i, 7) < 7 && noise.unit(i) < 1.0));
    }
}
