//! What the tests of several kernels need.

use crate::cpu::Cpu;
use crate::level::Level;

/// Every level that this machine has, with 1 and 2 threads; the first is the plainest.
pub(crate) fn cpus() -> Vec<Cpu> {
    let levels = Level::available().into_iter();
    let pairs = levels.flat_map(|level| [1, 2].map(|threads| (level, threads)));
    pairs.map(|(level, threads)| Cpu::with_level(threads, level).unwrap()).collect()
}

/// Reproducible values without structure (splitmix64).
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// In (-1, 1).
    pub(crate) fn float(&mut self) -> f32 {
        (self.bits() as i32 >> 7) as f32 / (1 << 24) as f32
    }

    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }
}

pub(crate) fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}
