//! v(w): what w rows cost, per format, beside the least that the machine allows,
//! max(bytes / B, w * MAC / R), with B and R measured in the same run.
//!
//! `cargo bench -p specdec-kernels --bench linear [-- FORMAT COLS ROUNDS KIB COUNT]`, `THREADS=n`
//! for other than two threads, `LEVEL=avx2` for another instruction level. Every round measures
//! B, R and every number of rows once, each on the next of COUNT matrices of KIB. Times are in
//! milliseconds, the least and the median over the rounds.
//! - Default: one matrix of 400 MiB, which is what a step of a model costs.
//! - COUNT = 1 and KIB of a few hundred: weights in the cache, that is, what arithmetic costs.
//! - COUNT * KIB far beyond the cache and KIB of a few thousand: times shorter than a time slice,
//!   whose least is good on a machine that others use as well.

mod common;

use std::env;

use common::{Limits, cpu, fill, table, timed, weights};
use specdec_kernels::{Acts, Cpu, Format, Forms, Matrix, Product, Store, linear};

const ROWS: [usize; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32];

fn main() {
    let args: Vec<String> = env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let number = |i: usize, default: usize| {
        args.get(i).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let cpu = cpu();
    let shape = Shape {
        cols: number(1, 1536),
        rounds: number(2, 9),
        bytes: number(3, 400 << 10) << 10,
        count: number(4, 1),
    };
    println!("{} threads, {}, {} columns", cpu.pool.threads(), cpu.level, shape.cols);
    for format in Format::ALL {
        if args.first().is_none_or(|name| format.to_string().eq_ignore_ascii_case(name)) {
            measure(&cpu, format, &shape);
        }
    }
}

/// What is measured.
struct Shape {
    cols: usize,
    rounds: usize,
    bytes: usize,
    count: usize,
}

fn measure(cpu: &Cpu, format: Format, shape: &Shape) {
    let Shape { cols, rounds, bytes, count } = *shape;
    let rows = bytes / format.row_bytes(cols).expect("whole blocks") / 16 * 16;
    let raw = weights(format, rows, cols);
    let pack = |_| Matrix::pack(cpu, format, rows, cols, &raw).expect("good weights");
    let matrices: Vec<Matrix> = (0..count).map(pack).collect();
    let mut acts = Acts::new(32, cols, Forms { int8x32: true, int8x256: true });
    fill(acts.rows_mut(32));
    acts.quantise(cpu, 32).expect("threads");
    let mut out = vec![0.0; 32 * rows];
    let mut limits = Limits::new(cpu);
    let mut times = vec![Vec::new(); ROWS.len()];
    let mut next = matrices.iter().cycle();
    for _ in 0..rounds {
        limits.probe(cpu);
        for (&n, times) in ROWS.iter().zip(&mut times) {
            let matrix = next.next().expect("no end");
            let out = &mut out[..n * rows];
            times.push(timed(|| {
                let product = Product { matrix, bias: None, store: Store::Set, out };
                linear(cpu, &acts, n, &mut [product]).expect("threads");
            }));
        }
    }
    let (bytes, macs) = (matrices[0].bytes(), rows * cols);
    let bits = bytes as f64 * 8.0 / macs as f64;
    println!("{format}: {:.1} MB, {bits:.3} bits a weight", bytes as f64 / 1e6);
    table(&limits, bytes, macs, &ROWS, &times);
}
