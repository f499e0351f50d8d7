//! What one more row costs, per format, beside the time of reading the weights and no more.
//!
//! `cargo bench -p specdec-kernels --bench linear [-- FORMAT COLS [ROUNDS]]`. Every round measures
//! the read and every number of rows once, so that all see the same machine; the smallest and the
//! median time over the rounds are printed.

use std::env;
use std::hint::black_box;
use std::time::Instant;

use specdec_kernels::{Acts, Cpu, Format, Forms, Matrix, Product, Store, linear};

const ROWS: [usize; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32];
/// Weights in total: more than any cache holds.
const BYTES: usize = 400 << 20;

fn main() {
    let args: Vec<String> = env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let rounds = args.get(2).map_or(9, |n| n.parse().expect("a number of rounds"));
    let cols = args.get(1).map_or(1536, |n| n.parse().expect("a number of columns"));
    let cpu = Cpu::new(env::var("THREADS").map_or(2, |n| n.parse().expect("a number of threads")))
        .expect("threads");
    println!("{} threads, {}, {cols} columns", cpu.pool.threads(), cpu.level);
    for format in Format::ALL {
        if args.first().is_none_or(|name| format.to_string().eq_ignore_ascii_case(name)) {
            measure(&cpu, format, cols, rounds);
        }
    }
}

/// Random bytes with scales of 2^-7.
fn weights(format: Format, rows: usize, cols: usize) -> Vec<u8> {
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

fn measure(cpu: &Cpu, format: Format, cols: usize, rounds: usize) {
    let rows = BYTES / format.row_bytes(cols).expect("whole blocks") / 16 * 16;
    let matrix = Matrix::pack(cpu, format, rows, cols, &weights(format, rows, cols));
    let matrix = matrix.expect("good weights");
    let copy = vec![1_u64; matrix.bytes() / 8];
    let mut acts = Acts::new(32, cols, Forms { int8x32: true, int8x256: true });
    for (i, x) in acts.rows_mut(32).iter_mut().enumerate() {
        *x = (i * 7919 % 1009) as f32 / 500.0 - 1.0;
    }
    acts.quantise(cpu, 32).expect("threads");
    let mut out = vec![0.0; 32 * rows];
    let mut times = vec![Vec::new(); ROWS.len() + 1];
    for _ in 0..rounds {
        times[0].push(timed(|| read(cpu, &copy)));
        for (&n, times) in ROWS.iter().zip(&mut times[1..]) {
            let out = &mut out[..n * rows];
            times.push(timed(|| {
                let product = Product { matrix: &matrix, bias: None, store: Store::Set, out };
                linear(cpu, &acts, n, &mut [product]).expect("threads");
            }));
        }
    }
    report(format, matrix.bytes(), rows * cols, times);
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

/// Reads everything once.
fn read(cpu: &Cpu, data: &[u64]) {
    let parts: Vec<&[u64]> = data.chunks(1 << 15).collect();
    let one = |i: usize| {
        black_box(parts[i].iter().fold(0, |a, b| a ^ b));
    };
    cpu.pool.run(parts.len(), &one).expect("threads");
}

fn report(format: Format, bytes: usize, weights: usize, mut times: Vec<Vec<f64>>) {
    for times in &mut times {
        times.sort_by(f64::total_cmp);
    }
    let (least, median) = (|t: &[f64]| t[0], |t: &[f64]| t[t.len() / 2]);
    let speed = |ms: f64| bytes as f64 / ms / 1e6;
    println!(
        "{format}: {:.0} MB, {:.3} bits a weight; read {:.1} ms ({:.1} GB/s), median {:.1} ms",
        bytes as f64 / 1e6,
        bytes as f64 * 8.0 / weights as f64,
        least(&times[0]),
        speed(least(&times[0])),
        median(&times[0]),
    );
    for (rows, t) in ROWS.iter().zip(&times[1..]) {
        println!(
            "  {rows:2} rows: least {:6.2} ms  x{:5.2}  read/this {:3.0} %   median {:6.2} ms  x{:5.2}  {:4.0} GMAC/s",
            least(t),
            least(t) / least(&times[1]),
            100.0 * least(&times[0]) / least(t),
            median(t),
            median(t) / median(&times[1]),
            (weights * rows) as f64 / least(t) / 1e6,
        );
    }
}
