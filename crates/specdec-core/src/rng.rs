//! Philox4x32-10 (Salmon et al., SC 2011): random numbers as a function of a counter and a key.
//!
//! Nothing is stored and nothing is advanced, so a rejected token cannot shift anyone's numbers.

/// The counter: four words.
pub type Counter = [u32; 4];

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Ten rounds of Philox4x32.
#[inline]
pub fn philox(mut counter: Counter, key: [u32; 2]) -> [u32; 4] {
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let a = u64::from(MULTIPLIERS[0]) * u64::from(counter[0]);
        let b = u64::from(MULTIPLIERS[1]) * u64::from(counter[2]);
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ k0,
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ k1,
            a as u32,
        ];
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    counter
}

/// A number of the open interval (0, 1): the midpoint (k + 1/2) * 2^-52, k the upper 52 bits of the
/// two words. Never 0, never 1, all 2^52 values alike.
#[inline]
pub fn uniform(low: u32, high: u32) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 52) as f64;
    let k = (u64::from(high) << 32 | u64::from(low)) >> 12;
    (k as f64 + 0.5) * STEP
}

/// Whose numbers: the seed of the request and which of its samples (index i of n).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Seed of the request, or one that the engine gave it.
    pub seed: u64,
    /// Index of the sample within the request.
    pub sample: u32,
}

impl Key {
    /// The two words of the Philox key.
    #[inline]
    pub fn words(self) -> [u32; 2] {
        [self.seed as u32, (self.seed >> 32) as u32]
    }
}
