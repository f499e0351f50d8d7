//! Multiplying integers out of registers and the first cache.

use std::hint::black_box;

use crate::cpu::Cpu;
use crate::level::{Kernel, Level};
use crate::pool::PoolError;
use crate::simd::{Operands, Simd};

/// Independent sums: two products a cycle of five cycles each, as on Zen 5, need ten.
const SUMS: usize = 12;
/// Products of one call: the longest chain of 4-bit weights.
const CHAIN: usize = 8;
/// Products of one turn of the loop: four bytes in each of sixteen lanes.
const PER_TURN: usize = SUMS * CHAIN * 64;
/// Tiles, many enough for threads of unequal speed.
const TILES: usize = 64;

/// Products of bytes, by the instruction that kernels use for 4-bit weights at a level, with
/// nothing to unpack, to scale or to wait for.
pub struct Multiplying {
    turns: usize,
}

impl Multiplying {
    /// About as many products as take a few milliseconds at `level`.
    pub fn new(level: Level) -> Self {
        let products: usize = match level {
            Level::Avx512 => 1 << 31,
            Level::Avx2 => 1 << 30,
            Level::Scalar => 1 << 26,
        };
        Self { turns: products / PER_TURN / TILES }
    }

    /// Multiplications with addition that a run does.
    pub fn macs(&self) -> usize {
        self.turns * PER_TURN * TILES
    }

    /// Multiplies on all threads.
    ///
    /// # Errors
    /// As [`crate::Pool::run`].
    pub fn run(&self, cpu: &Cpu) -> Result<(), PoolError> {
        let multiply = |_tile: usize| {
            let (w, x) = black_box(([15; 64], [i32::from_ne_bytes([127; 4]); SUMS]));
            black_box(cpu.level.run(Multiply { turns: self.turns, w: &w, x: &x }));
        };
        cpu.pool.run(TILES, &multiply)
    }
}

struct Multiply<'a> {
    turns: usize,
    w: &'a [u8; 64],
    x: &'a [i32; SUMS],
}

/// The same bytes in every vector.
impl Operands<CHAIN> for &[u8; 64] {
    #[inline(always)]
    fn operand<S: Simd>(self, s: S, _: usize) -> S::B {
        s.load_bytes(self)
    }
}

impl Kernel for Multiply<'_> {
    type Output = i32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> i32 {
        let x = self.x.map(|x| [x; CHAIN]);
        let mut sums = [s.splat_i32(0); SUMS];
        for _ in 0..self.turns {
            s.dots::<CHAIN, CHAIN, SUMS>(&mut sums, self.w, &x.each_ref());
        }
        let mut sum = s.splat_i32(0);
        for other in sums {
            sum = s.add_i32(sum, other);
        }
        s.sum_i32(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_product_is_made() {
        for level in Level::available() {
            let kernel = Multiply { turns: 3, w: &[2; 64], x: &[i32::from_ne_bytes([1; 4]); SUMS] };
            assert_eq!(level.run(kernel), (3 * PER_TURN * 2) as i32, "{level}");
        }
    }
}
