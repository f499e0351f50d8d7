//! What the benches share.

#![allow(dead_code, reason = "every bench uses its own part")]

use std::env;
use std::hint::black_box;
use std::time::Instant;

use specdec_kernels::{Cpu, Format, Level};

/// `THREADS` threads (2) at `LEVEL` (the best).
pub(crate) fn cpu() -> Cpu {
    let threads = env::var("THREADS").map_or(2, |n| n.parse().expect("a number of threads"));
    let level = env::var("LEVEL").map_or(Level::detect(), |name| name.parse().expect("a level"));
    Cpu::with_level(threads, level).expect("threads and level")
}

pub(crate) fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

pub(crate) fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Activations between -1 and 1.
pub(crate) fn fill(values: &mut [f32]) {
    for (i, x) in values.iter_mut().enumerate() {
        *x = (i * 7919 % 1009) as f32 / 504.5 - 1.0;
    }
}

/// Random bytes with scales of 2^-7.
pub(crate) fn weights(format: Format, rows: usize, cols: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let bytes = format.row_bytes(cols).expect("whole blocks") * rows;
    let mut raw: Vec<u8> = (0..bytes)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 26) as u8
        })
        .collect();
    for block in raw.chunks_mut(format.block_bytes()) {
        let scales: &[usize] = match format {
            Format::F32 => &[2],
            Format::Q6K => &[208],
            _ => &[0],
        };
        for &at in scales {
            block[at..at + 2].copy_from_slice(&0x2000_u16.to_le_bytes());
        }
    }
    raw
}

/// Milliseconds.
pub(crate) fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

/// Reads everything once: sixteen chains, so that the memory is the limit.
pub(crate) fn read(cpu: &Cpu, data: &[u64]) {
    const PART: usize = 1 << 15;
    let one = |i: usize| {
        let mut chains = [0; 16];
        for values in data[i * PART..].chunks_exact(16).take(PART / 16) {
            for (chain, value) in chains.iter_mut().zip(values) {
                *chain ^= value;
            }
        }
        black_box(chains);
    };
    cpu.pool.run(data.len().div_ceil(PART), &one).expect("threads");
}
