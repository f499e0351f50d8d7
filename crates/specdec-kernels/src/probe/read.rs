//! Reading memory from one end to the other.

use std::hint::black_box;

use crate::cpu::Cpu;
use crate::level::Kernel;
use crate::memory::Buffer;
use crate::pool::PoolError;
use crate::simd::{LANES, Simd};

/// Values of one tile: 1 MiB, so that the start of a stream is paid for once in many pages.
const TILE: usize = (1 << 20) / size_of::<f32>();
/// Vectors of one turn of the loop.
const CHAINS: usize = 8;

/// Memory on huge pages that is read as kernels read weights: in order, by all threads.
pub struct Reading {
    values: Buffer<f32>,
}

impl Reading {
    /// At least `bytes` of memory, all touched. More than the last cache holds measures the memory
    /// and not the cache. `None` if there is no such memory.
    ///
    /// # Errors
    /// As [`crate::Pool::run`].
    pub fn new(cpu: &Cpu, bytes: usize) -> Result<Option<Self>, PoolError> {
        let len = bytes.div_ceil(size_of::<f32>()).checked_next_multiple_of(TILE);
        let Some(mut values) = len.and_then(Buffer::zeroed) else {
            return Ok(None);
        };
        // A page that was never written is the system's one page of zeros, which the cache holds.
        values.fill(1.0);
        let probe = Self { values };
        probe.run(cpu)?;
        Ok(Some(probe))
    }

    /// Bytes that a run reads.
    pub fn bytes(&self) -> usize {
        self.values.bytes()
    }

    /// Reads everything once.
    ///
    /// # Errors
    /// As [`crate::Pool::run`].
    pub fn run(&self, cpu: &Cpu) -> Result<(), PoolError> {
        let read = |tile: usize| {
            let (lines, _) = self.values[tile * TILE..][..TILE].as_chunks::<LANES>();
            black_box(cpu.level.run(Read { lines }));
        };
        cpu.pool.run(self.values.len() / TILE, &read)
    }
}

struct Read<'a> {
    lines: &'a [[f32; LANES]],
}

impl Kernel for Read<'_> {
    type Output = i32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> i32 {
        let mut sums = [s.splat_i32(0); CHAINS];
        for lines in self.lines.as_chunks::<CHAINS>().0 {
            for (sum, line) in sums.iter_mut().zip(lines) {
                *sum = s.add_i32(*sum, s.as_bits(s.load(line)));
            }
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
    use crate::level::Level;

    #[test]
    fn every_value_is_read_once() {
        let cpu = Cpu::new(1).unwrap();
        let mut probe = Reading::new(&cpu, 1).unwrap().unwrap();
        assert_eq!(probe.bytes(), TILE * 4);
        for (i, value) in probe.values.iter_mut().enumerate() {
            *value = f32::from_bits(i as u32);
        }
        let expected = (0..TILE as u32).fold(0_u32, u32::wrapping_add) as i32;
        let (lines, _) = probe.values.as_chunks();
        for level in Level::available() {
            assert_eq!(level.run(Read { lines }), expected, "{level}");
        }
    }

    #[test]
    fn no_memory_is_no_panic() {
        let cpu = Cpu::new(1).unwrap();
        assert!(Reading::new(&cpu, usize::MAX).unwrap().is_none());
        assert!(Reading::new(&cpu, usize::MAX / 4).unwrap().is_none());
    }
}
