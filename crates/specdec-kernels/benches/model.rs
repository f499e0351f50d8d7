//! What one more row costs over all products of a real model, in the shapes and formats of its file.
//!
//! `cargo bench -p specdec-kernels --bench model [-- NAME [ROUNDS]]`, NAME one of `smollm2`,
//! `qwen1.5b`, `qwen0.5b`; `THREADS` and `LEVEL` as in the bench `linear`. Every round measures
//! the machine's limits and a step of every number of rows, so that all see the same machine.

mod common;

use std::collections::HashMap;
use std::env;

use common::{Limits, cpu, fill, table, timed, weights};
use specdec_kernels::Format::{Q4_1, Q4K, Q5_0, Q6K, Q8_0};
use specdec_kernels::{Acts, Cpu, Format, Forms, Matrix, Product, Store, linear};

const ROWS: [usize; 10] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 32];

/// Products of a layer that are one region: (columns, [(rows, format in even and odd layers)]).
type Region = (usize, &'static [(usize, [Format; 2])]);

struct Model {
    name: &'static str,
    layers: usize,
    regions: &'static [Region],
    head: (usize, usize, Format),
}

const MODELS: [Model; 3] = [
    Model {
        name: "smollm2",
        layers: 30,
        regions: &[
            (576, &[(576, [Q4_1; 2]), (192, [Q4_1; 2]), (192, [Q4_1; 2])]),
            (576, &[(576, [Q4_1; 2])]),
            (576, &[(1536, [Q4_1; 2]), (1536, [Q4_1; 2])]),
            (1536, &[(576, [Q4_1; 2])]),
        ],
        head: (576, 49152, Q8_0),
    },
    Model {
        name: "qwen1.5b",
        layers: 28,
        regions: &[
            (1536, &[(1536, [Q4K; 2]), (256, [Q4K; 2]), (256, [Q4K, Q6K])]),
            (1536, &[(1536, [Q4K; 2])]),
            (1536, &[(8960, [Q4K; 2]), (8960, [Q4K; 2])]),
            (8960, &[(1536, [Q4K, Q6K])]),
        ],
        head: (1536, 151_936, Q6K),
    },
    Model {
        name: "qwen0.5b",
        layers: 24,
        regions: &[
            (896, &[(896, [Q5_0; 2]), (128, [Q5_0; 2]), (128, [Q5_0, Q8_0])]),
            (896, &[(896, [Q5_0; 2])]),
            (896, &[(4864, [Q5_0; 2]), (4864, [Q5_0; 2])]),
            (4864, &[(896, [Q4K, Q6K])]),
        ],
        head: (896, 151_936, Q8_0),
    },
];

fn main() {
    let args: Vec<String> = env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let rounds = args.get(1).map_or(9, |text| text.parse().expect("a whole number"));
    let cpu = cpu();
    println!("{} threads, {}", cpu.pool.threads(), cpu.level);
    for model in &MODELS {
        if args.first().is_none_or(|name| name == model.name) {
            Step::new(&cpu, model).measure(&cpu, model.name, rounds);
        }
    }
}

/// Matrices of one region, with its input and output.
struct Part {
    cols: usize,
    matrices: Vec<Matrix>,
}

struct Step {
    parts: Vec<Part>,
    /// By width.
    acts: HashMap<usize, Acts>,
    out: Vec<f32>,
}

impl Step {
    fn new(cpu: &Cpu, model: &Model) -> Step {
        let mut raw: HashMap<(Format, usize, usize), Vec<u8>> = HashMap::new();
        let mut pack = |format, rows, cols| {
            let raw =
                raw.entry((format, rows, cols)).or_insert_with(|| weights(format, rows, cols));
            Matrix::pack(cpu, format, rows, cols, raw).expect("good weights")
        };
        let mut parts = Vec::new();
        for layer in 0..model.layers {
            for &(cols, products) in model.regions {
                let matrices =
                    products.iter().map(|(rows, formats)| pack(formats[layer % 2], *rows, cols));
                parts.push(Part { cols, matrices: matrices.collect() });
            }
        }
        let (cols, rows, format) = model.head;
        parts.push(Part { cols, matrices: vec![pack(format, rows, cols)] });
        let mut acts = HashMap::new();
        for part in &parts {
            acts.entry(part.cols).or_insert_with(|| activations(cpu, part.cols));
        }
        Step { parts, acts, out: vec![0.0; 32 * rows] }
    }

    /// All products of a step, region by region.
    fn run(&mut self, cpu: &Cpu, n: usize) {
        for part in &self.parts {
            let mut out = &mut self.out[..];
            let mut products = Vec::new();
            for matrix in &part.matrices {
                let (this, rest) = out.split_at_mut(n * matrix.rows());
                products.push(Product { matrix, bias: None, store: Store::Set, out: this });
                out = rest;
            }
            linear(cpu, &self.acts[&part.cols], n, &mut products).expect("threads");
        }
    }

    fn measure(mut self, cpu: &Cpu, name: &str, rounds: usize) {
        let matrices = || self.parts.iter().flat_map(|part| &part.matrices);
        let bytes: usize = matrices().map(Matrix::bytes).sum();
        let weights: usize = matrices().map(|m| m.rows() * m.cols()).sum();
        let mut limits = Limits::new(cpu);
        let mut times = vec![Vec::new(); ROWS.len()];
        for _ in 0..rounds {
            limits.probe(cpu);
            for (&n, times) in ROWS.iter().zip(&mut times) {
                times.push(timed(|| self.run(cpu, n)));
            }
        }
        println!("{name}: {:.1} MB", bytes as f64 / 1e6);
        table(&limits, bytes, weights, &ROWS, &times);
    }
}

fn activations(cpu: &Cpu, cols: usize) -> Acts {
    let mut acts = Acts::new(32, cols, Forms { int8x32: true, int8x256: true });
    fill(acts.rows_mut(32));
    acts.quantise(cpu, 32).expect("threads");
    acts
}
