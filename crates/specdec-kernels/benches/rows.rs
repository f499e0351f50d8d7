//! What the law costs: passes over rows of a vocabulary, each beside our own max + exp + sum over
//! the same rows in the same round.
//!
//! `cargo bench -p specdec-kernels --bench rows [-- ROWS VOCAB ROUNDS]`, `LEVEL=avx2` for another
//! instruction level. Times are microseconds for all rows on one thread (but for the last line), the
//! median over the rounds; `x` is the median of the ratios.

mod common;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use common::{cpu, median};
use specdec_core::chances::{Coupled, Independent};
use specdec_core::rng::{Key, philox};
use specdec_core::row_ops::RowOps;
use specdec_core::{DraftTree, History, Law, Processors, Sampling, Scratch};
use specdec_kernels::{Pool, SimdRows};

const KEY: Key = Key { seed: 1, sample: 0 };

/// Logits as a language model gives them: most far below the best.
fn logits(rows: usize, vocab: usize) -> Vec<Vec<f32>> {
    let uniform = |i: u32, row: u32| {
        let words = philox([i, row, 0, 0], [7, 7]);
        words.iter().map(|&w| w as f32 / 4_294_967_296.0).sum::<f32>() - 2.0
    };
    (0..rows as u32)
        .map(|row| (0..vocab as u32).map(|i| uniform(i, row) * 6.0 + tail(i, row)).collect())
        .collect()
}

/// A few tokens stand out.
fn tail(i: u32, row: u32) -> f32 {
    if (i + 31 * row).is_multiple_of(997) {
        12.0 * philox([i, row, 1, 0], [7, 7])[0] as f32 / 4e9
    } else {
        0.0
    }
}

struct Bench {
    rows: Vec<Vec<f32>>,
    ops: SimdRows,
    scratch: Scratch,
    laws: Vec<Law>,
    history: History,
}

impl Bench {
    fn laws(&mut self, processors: &Processors) {
        for (row, law) in self.rows.iter().zip(&mut self.laws) {
            let prefix = self.history.then(&[3, 4]);
            processors.law(row, prefix, &mut self.ops, &mut self.scratch, law).expect("a law");
        }
    }

    /// Our own max + exp + sum.
    fn baseline(&mut self) {
        for row in &self.rows {
            let (_, max) = self.ops.max(row).expect("numbers");
            black_box(self.ops.exp_sum(row, max, 1.0 / 0.7));
        }
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e6
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let number = |i: usize, default: usize| {
        args.get(i).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let (rows, vocab, rounds) = (number(0, 8), number(1, 151_936), number(2, 40));
    let cpu = cpu();
    let mut history = History::new(&(0..500).collect::<Vec<_>>());
    (0..500).for_each(|token| history.push(token * 7));
    let mut bench = Bench {
        rows: logits(rows, vocab),
        ops: SimdRows::new(cpu.level),
        scratch: Scratch::default(),
        laws: vec![Law::one_hot(0); rows],
        history,
    };
    println!("{rows} rows of {vocab}, {}", cpu.level);
    passes(&mut bench, vocab, rounds);
    draws(&mut bench, vocab, rounds);
    two_threads(&bench, &cpu.pool, vocab, rounds);
}

fn chains() -> Vec<(&'static str, Sampling)> {
    let model = || Sampling { temperature: 0.7, ..Sampling::default() };
    vec![
        ("greedy", Sampling::greedy()),
        ("temperature", model()),
        ("top_p 0.95", Sampling { top_p: 0.95, ..model() }),
        ("top_k 50", Sampling { top_k: 50, ..model() }),
        ("min_p 0.05", Sampling { min_p: 0.05, ..model() }),
        ("penalties, top_p 0.95", Sampling { top_p: 0.95, presence_penalty: 0.5, ..model() }),
    ]
}

fn report(name: &str, times: &[f64], baseline: &[f64]) {
    let ratios: Vec<f64> = times.iter().zip(baseline).map(|(time, base)| time / base).collect();
    println!("{name:24} {:9.1}  x {:5.2}", median(times), median(&ratios));
}

fn passes(bench: &mut Bench, vocab: usize, rounds: usize) {
    let chains = chains();
    let mut times = vec![Vec::new(); chains.len() + 1];
    for _ in 0..rounds {
        times[0].push(timed(|| bench.baseline()));
        for (i, (_, sampling)) in chains.iter().enumerate() {
            let processors = Processors::new(sampling, vocab).expect("in range");
            times[i + 1].push(timed(|| bench.laws(&processors)));
        }
    }
    report("max + exp + sum", &times[0], &times[0]);
    for ((name, _), own) in chains.iter().zip(&times[1..]) {
        report(name, own, &times[0]);
    }
}

fn draws(bench: &mut Bench, vocab: usize, rounds: usize) {
    let model = Sampling { temperature: 0.7, ..Sampling::default() };
    bench.laws(&Processors::new(&model, vocab).expect("in range"));
    let law = bench.laws[0].clone();
    let q = Arc::new(law.clone());
    let noise = Coupled { key: KEY };
    let mut times = vec![Vec::new(); 4];
    for round in 0..rounds {
        times[0].push(timed(|| bench.baseline()) / bench.rows.len() as f64);
        times[1].push(timed(|| {
            black_box(noise.race(round, &law));
        }));
        let mut numbers = Independent { key: KEY, committed: round as u32 };
        times[2].push(timed(|| {
            let mut tree = DraftTree::new();
            black_box(tree.draw(None, &q, 4, round, &mut numbers));
        }));
        times[3].push(timed(|| {
            let words = (0..vocab as u32 / 2).map(|i| philox([i, round as u32, 0, 0], [1, 2])[0]);
            black_box(words.fold(0, |all, word| all ^ word));
        }));
    }
    println!("for one row:");
    let names = [
        "max + exp + sum",
        "coupled, all tokens",
        "4 children of a dense q",
        "Philox, V / 2 blocks",
    ];
    for (name, own) in names.iter().zip(&times) {
        report(name, own, &times[0]);
    }
}

/// All nodes at once, shared by the threads of the pool.
fn two_threads(bench: &Bench, pool: &Pool, vocab: usize, rounds: usize) {
    let sampling = Sampling { temperature: 0.7, top_p: 0.95, ..Sampling::default() };
    let processors = Processors::new(&sampling, vocab).expect("in range");
    let nodes: Vec<_> = bench.rows.iter().map(|_| std::sync::Mutex::new(Law::one_hot(0))).collect();
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.push(timed(|| {
            let law = |i: usize| {
                let mut law = nodes[i].lock().expect("no panic");
                let (mut ops, mut scratch) = (bench.ops.clone(), Scratch::default());
                let prefix = bench.history.then(&[]);
                processors
                    .law(&bench.rows[i], prefix, &mut ops, &mut scratch, &mut law)
                    .expect("a law");
            };
            pool.run(nodes.len(), &law).expect("threads");
        }));
    }
    println!("{:24} {:9.1}  on {} threads", "top_p 0.95", median(&times), pool.threads());
}
