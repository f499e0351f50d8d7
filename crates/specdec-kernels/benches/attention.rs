//! What attention costs: drafted rows behind a context, as a chain and as a tree of two chains.
//!
//! `cargo bench -p specdec-kernels --bench attention [-- HEADS KV_HEADS HEAD_DIM ROUNDS]`, `THREADS`
//! and `LEVEL` as in the bench `linear`; by default a layer of Qwen2.5-Coder-1.5B. Every call reads
//! the next of 28 layers. Times are microseconds a call, the median over the rounds; GFMA/s count the
//! products with keys and values, GB/s what is read of the store, both for chains.

mod common;

use std::env;

use common::{cpu, fill, median, timed};
use specdec_kernels::{
    Acts, Cpu, Forms, KvStore, KvType, PAGE, Partials, Rope, RopeKind, Span, attention, rope_append,
};

const LAYERS: usize = 28;
const ROWS: [usize; 6] = [1, 2, 4, 8, 12, 16];
const CONTEXTS: [usize; 3] = [256, 1024, 4096];

fn main() {
    let args: Vec<String> = env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let number = |i: usize, default: usize| {
        args.get(i).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let shape = Shape { heads: number(0, 12), kv_heads: number(1, 2), head_dim: number(2, 128) };
    let (cpu, rounds) = (cpu(), number(3, 5));
    println!("{} threads, {}, {shape:?}", cpu.pool.threads(), cpu.level);
    println!("context  rows   chain    tree  GFMA/s   GB/s");
    for context in CONTEXTS {
        measure(&cpu, shape, context, rounds);
    }
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
}

fn measure(cpu: &Cpu, shape: Shape, context: usize, rounds: usize) {
    let Shape { heads, kv_heads, head_dim } = shape;
    let most = ROWS[ROWS.len() - 1];
    let kv = filled(cpu, shape, context + most);
    let pages: Vec<u32> = (0..(context + most).div_ceil(PAGE) as u32).collect();
    let mut q = vec![0.0; most * heads * head_dim];
    fill(&mut q);
    let mut partials = Partials::new(most, heads, head_dim);
    let mut out = Acts::new(most, heads * head_dim, Forms { int8x32: false, int8x256: true });
    for rows in ROWS {
        let (q, scale) = (&q[..rows * heads * head_dim], 1.0 / (head_dim as f32).sqrt());
        let mut us = |paths: &[Path]| {
            let spans: Vec<Span<'_>> = paths
                .iter()
                .map(|(linear, extra)| Span {
                    pages: &pages,
                    linear: *linear as u32,
                    extra,
                    from: 0,
                })
                .collect();
            let mut times = Vec::new();
            for layer in (0..LAYERS).cycle().take(rounds * LAYERS) {
                times.push(timed(|| {
                    attention(cpu, &kv, layer, q, heads, &spans, scale, &mut partials, &mut out)
                        .expect("threads");
                }));
            }
            median(&times) * 1e3
        };
        let (chain, tree) = (us(&chain(context, rows)), us(&tree(context, rows)));
        let seen: usize = (1..=rows).map(|row| context + row).sum();
        let (fmas, bytes) =
            (2 * seen * heads * head_dim, 4 * (context + rows) * kv_heads * head_dim);
        let [fmas, bytes] = [fmas, bytes].map(|count| count as f64 / chain / 1e3);
        println!("{context:7} {rows:5} {chain:7.1} {tree:7.1} {fmas:7.1} {bytes:6.1}");
    }
}

/// How many positions lie in pages, and the slots of those behind.
type Path = (usize, Vec<u32>);

/// Every row behind the one before it.
fn chain(context: usize, rows: usize) -> Vec<Path> {
    (1..=rows).map(|row| (context + row, Vec::new())).collect()
}

/// Two chains, row by row in turns.
fn tree(context: usize, rows: usize) -> Vec<Path> {
    let before = |row: usize| (row % 2..=row).step_by(2).map(|i| (context + i) as u32).collect();
    (0..rows).map(|row| (context, before(row))).collect()
}

/// A store of as many positions.
fn filled(cpu: &Cpu, shape: Shape, positions: usize) -> KvStore {
    let Shape { kv_heads, head_dim, .. } = shape;
    let pages = positions.div_ceil(PAGE);
    let mut kv = KvStore::new(LAYERS, pages, kv_heads, head_dim, KvType::F16).expect("memory");
    let slots: Vec<u32> = (0..(pages * PAGE) as u32).collect();
    let rope = Rope::new(RopeKind::Halves, head_dim, 1e4, None);
    let mut table = Vec::new();
    rope.table(&slots, &mut table);
    let mut k = vec![0.0; slots.len() * kv_heads * head_dim];
    fill(&mut k);
    let v = k.clone();
    for layer in 0..LAYERS {
        let (q, n) = (&mut [][..], slots.len());
        rope_append(cpu, &rope, &table, n, q, &k, &v, &slots, &mut kv, layer).expect("threads");
    }
    kv
}
