//! What the benches share.

#![allow(dead_code, reason = "every bench uses its own part")]

use std::env;
use std::time::Instant;

use specdec_kernels::probe::{Multiplying, Reading};
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

/// Activations that are as many small and few large as a model's, by Laplace's law: of blocks of 256,
/// 0.5 % have a run of 16 whose quantised sizes sum to more than 800, 1.1 % of those of
/// Qwen2.5-Coder-1.5B on source code, where runs beyond 1023 take Q6_K's slower path.
pub(crate) fn fill(values: &mut [f32]) {
    let mut state = 1_u32;
    for x in values {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (size, sign) = ((state >> 8) as f32 + 1.0, state << 24 & 1 << 31);
        *x = f32::from_bits((-(size / (1 << 24) as f32).ln()).to_bits() ^ sign);
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

/// What the machine can do at most, measured in turns with the kernels.
pub(crate) struct Limits {
    reading: Reading,
    multiplying: Multiplying,
    read: Vec<f64>,
    multiply: Vec<f64>,
}

impl Limits {
    pub(crate) fn new(cpu: &Cpu) -> Limits {
        let reading = Reading::new(cpu, 256 << 20).expect("threads").expect("256 MiB");
        let multiplying = Multiplying::new(cpu.level);
        Limits { reading, multiplying, read: Vec::new(), multiply: Vec::new() }
    }

    /// Measures both once.
    pub(crate) fn probe(&mut self, cpu: &Cpu) {
        self.read.push(timed(|| self.reading.run(cpu).expect("threads")));
        self.multiply.push(timed(|| self.multiplying.run(cpu).expect("threads")));
    }

    /// Bytes per millisecond, the best seen.
    pub(crate) fn bytes_per_ms(&self) -> f64 {
        self.reading.bytes() as f64 / least(&self.read)
    }

    /// Products per millisecond, the best seen.
    pub(crate) fn macs_per_ms(&self) -> f64 {
        self.multiplying.macs() as f64 / least(&self.multiply)
    }

    /// The least time, in milliseconds, of `rows` rows of `macs` products each over `bytes`.
    pub(crate) fn roof(&self, bytes: usize, macs: usize, rows: usize) -> f64 {
        (bytes as f64 / self.bytes_per_ms()).max((rows * macs) as f64 / self.macs_per_ms())
    }
}

/// A table of `times` by `rows` beside the roof.
pub(crate) fn table(
    limits: &Limits,
    bytes: usize,
    macs: usize,
    rows: &[usize],
    times: &[Vec<f64>],
) {
    println!(
        "  B {:.1} GB/s, R {:.0} GMAC/s\n  rows   least    v(w)    roof  least/roof   median    v(w)  GMAC/s",
        limits.bytes_per_ms() / 1e6,
        limits.macs_per_ms() / 1e6,
    );
    for (&n, t) in rows.iter().zip(times) {
        let roof = limits.roof(bytes, macs, n);
        println!(
            "  {n:4} {:7.3} {:7.2} {roof:7.3} {:11.2} {:8.3} {:7.2} {:7.0}",
            least(t),
            least(t) / least(&times[0]),
            least(t) / roof,
            median(t),
            median(t) / median(&times[0]),
            (n * macs) as f64 / least(t) / 1e6,
        );
    }
}
