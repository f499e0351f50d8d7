//! What a tree costs beside its forward pass: its growth, its mask (what each row sees), and the
//! walk of the verifiers over rows of a vocabulary.
//!
//! `cargo bench -p specdec-engine --bench tree [-- VOCAB ROUNDS]`. Microseconds on one thread, the
//! median over the rounds.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use specdec_core::rng::{Key, philox};
use specdec_core::verify::PathLaws;
use specdec_core::{
    Budget, DraftTree, History, Law, Method, Ngram, Processors, Sampling, Scratch, TokenId,
};
use specdec_engine::cache::{PagePool, SeqCache};
use specdec_engine::model::rows::{Batch, Row};
use specdec_kernels::SimdRows;

const KEY: Key = Key { seed: 1, sample: 0 };
/// Nodes of a tree, two to a level.
const NODES: usize = 8;
/// Sequences that share a pass, and their committed tokens.
const SEQS: usize = 8;
const COMMITTED: usize = 500;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let number = |i: usize, default: usize| {
        args.get(i).map_or(default, |text| text.parse().expect("a whole number"))
    };
    let (vocab, rounds) = (number(0, 151_936), number(1, 200));
    growth(vocab, rounds);
    mask(rounds);
    walks(vocab, rounds);
}

/// The median time of `work`, which is told the round.
fn timed(name: &str, rounds: usize, mut work: impl FnMut(usize)) {
    let mut times: Vec<f64> = (0..rounds)
        .map(|round| {
            let start = Instant::now();
            work(round);
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name:44} {:10.2}", times[rounds / 2]);
}

/// Logits as a language model gives them: most far below the best. `noise` tells draft and target
/// apart, which mostly agree.
fn logits(row: u32, vocab: usize, noise: f32) -> Vec<f32> {
    let number = |i: u32, salt: u32| {
        let words = philox([i, row, salt, 0], [7, 7]);
        words.iter().map(|&w| w as f32 / 4_294_967_296.0).sum::<f32>() - 2.0
    };
    let tail =
        |i: u32| if (i + 31 * row).is_multiple_of(997) { 6.0 + number(i, 1) * 6.0 } else { 0.0 };
    (0..vocab as u32).map(|i| number(i, 0) * 6.0 + tail(i) + noise * number(i, 2)).collect()
}

fn chains() -> [(&'static str, Sampling); 2] {
    let warm = Sampling { temperature: 0.7, ..Sampling::default() };
    [("top_p 0.95", Sampling { top_p: 0.95, ..warm.clone() }), ("uncut", warm)]
}

fn law(processors: &Processors, row: &[f32]) -> Arc<Law> {
    let mut law = Law::one_hot(0);
    let (ops, scratch) = (&mut SimdRows::default(), &mut Scratch::default());
    processors.law(row, History::default().then(&[]), ops, scratch, &mut law).expect("a law");
    Arc::new(law)
}

/// A tree of [`NODES`] nodes from the law of each node, two to a level below the first of the last.
fn drawn(laws: &[Arc<Law>], committed: usize, method: Method) -> DraftTree {
    let mut numbers = method.draws(committed, KEY);
    let (mut tree, mut parent) = (DraftTree::new(), None);
    while tree.len() < NODES {
        let q = &laws[parent.map_or(0, |parent| parent + 1)];
        parent = tree.draw(parent, q, 2, committed, numbers.as_mut()).first().copied();
    }
    tree
}

fn growth(vocab: usize, rounds: usize) {
    for (name, sampling) in chains() {
        let processors = Processors::new(&sampling, vocab).expect("in range");
        let laws: Vec<_> =
            (0..=NODES as u32).map(|row| law(&processors, &logits(row, vocab, 0.0))).collect();
        timed(&format!("{NODES} nodes drawn, {name}"), rounds, |round| {
            black_box(drawn(&laws, round, Method::Standard));
        });
    }
    let context: Vec<TokenId> = (0..4096).map(|i| i * i % 61).collect();
    let mut ngram = Ngram::new(2, 5, 3).expect("lengths");
    timed("prompt lookup in 4096 tokens, 3 paths", rounds, |_| {
        let mut tree = DraftTree::new();
        ngram.extend(&context, Budget { nodes: NODES, depth: 4 }, &mut tree);
        black_box(tree);
    });
    let paths: Vec<Vec<TokenId>> = (0..8).map(|i| (0..8).map(|j| i / (j + 1)).collect()).collect();
    timed("8 paths of 8 tokens merged", rounds, |_| {
        let mut tree: DraftTree = DraftTree::new();
        for path in &paths {
            let below = |parent, &token| tree.merge(parent, token).ok();
            black_box(path.iter().fold(None, below));
        }
        black_box(tree);
    });
}

/// Positions, slots and visible keys of all rows of a pass.
fn mask(rounds: usize) {
    let mut pages = PagePool::new(SEQS * COMMITTED.div_ceil(64) + 2 * SEQS, false);
    let mut caches: Vec<SeqCache> = (0..SEQS).map(|_| SeqCache::default()).collect();
    for cache in &mut caches {
        pages.reserve(cache, COMMITTED + 1 + NODES).expect("pages");
        cache.commit(&(0..COMMITTED).collect::<Vec<_>>());
    }
    let mut rows = Vec::new();
    for seq in 0..SEQS {
        let first = rows.len();
        for node in 0..=NODES {
            // The last known token, and below it two nodes a level.
            let parent = node.checked_sub(1).map(|before| first + before / 2 * 2);
            rows.push(Row { token: 0, seq, parent, logits: true, hidden: false });
        }
    }
    let caches: Vec<&mut SeqCache> = caches.iter_mut().collect();
    let mut batch = Batch::default();
    timed(&format!("mask of {SEQS} trees of {NODES} nodes"), rounds, |_| {
        batch.clear();
        batch.lay_out(&rows, &caches).expect("rows");
        black_box(batch.step(None).spans.len());
    });
}

/// A verifier on a tree drawn from a draft that mostly agrees with the target.
fn walks(vocab: usize, rounds: usize) {
    let rows: Vec<_> = (0..=NODES as u32).map(|row| logits(row, vocab, 0.0)).collect();
    let (mut ops, mut scratch) = (SimdRows::default(), Scratch::default());
    let (history, mut buffers) = (History::default(), Vec::new());
    for (name, sampling) in chains() {
        let processors = Processors::new(&sampling, vocab).expect("in range");
        let near = |row: u32| law(&processors, &logits(row, vocab, 2.0));
        let drafts: Vec<_> = (0..=NODES as u32).map(near).collect();
        for method in [Method::Standard, Method::Traversal, Method::Coupled] {
            let tree = |round| drawn(&drafts, round, method);
            let trees: Vec<_> = (0..rounds).map(tree).collect();
            let (mut made, mut accepted) = (0, 0);
            timed(&format!("{method:?}, tree of {NODES}, {name}"), rounds, |round| {
                let mut laws = PathLaws::new(&trees[round], &mut buffers, |node, law| {
                    made += 1;
                    let row = &rows[node.map_or(0, |node| node + 1)];
                    processors.law(row, history.then(&[]), &mut ops, &mut scratch, law)
                });
                let outcome = method.verify(&trees[round], &mut laws, round, KEY).expect("laws");
                accepted += outcome.path.len();
            });
            let mean = |count: usize| count as f64 / rounds as f64;
            println!("    {:.2} laws, {:.2} accepted tokens", mean(made), mean(accepted));
        }
    }
}
