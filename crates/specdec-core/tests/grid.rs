//! The shipped float path under a coarse generator: u runs over every point of a grid, so the law
//! of the code is known exactly, rounding, strictness of comparisons and all.

use specdec_core::chances::Coupled;
use specdec_core::verify::matching;
use specdec_core::{Law, Number, TokenId};
use specdec_testkit::drafts::{Drafts, Shape};
use specdec_testkit::enumerate::enumerate;
use specdec_testkit::grid::{Few, Fit, Grid, midpoints};
use specdec_testkit::rational::Rational;
use specdec_testkit::rounds::{Verifier, emitted, round, toy_laws};
use specdec_testkit::toy::{self, Toy, Words, texts};

/// Chains and small trees: at most 5 numbers are drawn in a round.
fn drafts(words: &mut Words) -> Drafts {
    let (branching, depth) = [(1, 1), (1, 2), (2, 1)][words.below(3)];
    Drafts { shape: Shape::ALL[words.below(5)], branching, depth, nodes: 2, cut: words.once_in(3) }
}

/// How many instances of each shape fit the grid, and so have been compared.
fn compare_on_grid(verifier: Verifier, enough: usize) {
    let points = midpoints(3);
    let mut compared = [0; 5];
    for seed in 0..20_000 {
        let drafts = drafts(&mut Words::new(seed, 1, &[]));
        let toy = Toy { vocab: 3, seed, greedy: false };
        let mut fits = compared[drafts.shape as usize] < enough;
        if !fits {
            continue;
        }
        enumerate(|branches| {
            let mut fit = Fit::new(8, branches, &mut fits);
            round(&toy, &drafts, verifier, &[], &mut fit);
        });
        if fits {
            compared[drafts.shape as usize] += 1;
            compare(&toy, &drafts, verifier, &points);
        }
    }
    assert_eq!(compared, [enough; 5], "too few instances of {verifier:?} fit the grid");
}

#[test]
fn counts_on_the_midpoint_grid_are_exact_for_recursive_rejection() {
    compare_on_grid(Verifier::Standard, 15);
}

#[test]
fn counts_on_the_midpoint_grid_are_exact_for_traversal() {
    compare_on_grid(Verifier::Traversal, 15);
}

#[test]
fn counts_on_the_midpoint_grid_are_exact_for_sample_and_match() {
    compare_on_grid(Verifier::Matching, 15);
}

/// The law of the first token, on the grid and as plain decoding has it.
fn compare(toy: &Toy, drafts: &Drafts, verifier: Verifier, points: &[f64]) {
    let law = enumerate(|branches| {
        round(toy, drafts, verifier, &[], &mut Grid::new(points, branches))[0]
    });
    for token in 0..toy.vocab as TokenId {
        let found = law.get(&token).cloned().unwrap_or_else(Rational::zero);
        let expected = toy.probability::<Rational>(&[], &[token]);
        assert_eq!(found, expected, "token {token} with {drafts:?}, {toy:?}");
    }
}

#[test]
fn no_impossible_token_at_the_extremes_of_u() {
    // The smallest and largest number that the generator can give, and one between.
    let points = [0.5_f64.powi(53), 0.5, 1.0 - 0.5_f64.powi(53)];
    for seed in 0..2_000 {
        let drafts = drafts(&mut Words::new(seed, 2, &[]));
        let toy = Toy { vocab: 4, seed, greedy: false };
        for verifier in Verifier::ALL {
            let law = enumerate(|branches| {
                round(&toy, &drafts, verifier, &[], &mut Grid::new(&points, branches))
            });
            for tokens in law.keys() {
                let p = toy.probability::<Rational>(&[], tokens);
                assert!(p > Rational::zero(), "{tokens:?} with {verifier:?}, {drafts:?}, {toy:?}");
            }
        }
    }
}

/// Noise of `coupled` on a grid: the smallest and the largest number, and midpoints of quarters.
const FEW: [u64; 5] = [0, 1 << 49, 3 << 49, 7 << 49, (1 << 52) - 1];

#[test]
fn the_race_of_coupled_on_the_grid_is_that_of_exact_arithmetic() {
    for seed in 0..200 {
        let toy = Toy { vocab: 2 + seed as usize % 3, seed, greedy: false };
        let weights = toy.target(&[]);
        let dense: Law = toy::law(&weights);
        let sparse = dense.without(&[]).expect("a law");
        for chosen in texts(FEW.len(), toy.vocab) {
            let few = Few { points: &FEW, chosen: &chosen, vocab: toy.vocab };
            let expected = few.order(0, &weights);
            let noise = Coupled { key: few };
            for law in [&dense, &sparse] {
                assert_eq!(noise.ranking(0, law, &[], 9), expected, "{weights:?}, {chosen:?}");
                assert_eq!(noise.race(0, law), expected[0], "{weights:?}, {chosen:?}");
            }
        }
    }
}

#[test]
fn counts_on_the_grid_are_exact_for_coupled() {
    const POINTS: [u64; 3] = [0, 1 << 51, (1 << 52) - 1];
    let mut accepted = 0;
    for seed in 0..150 {
        let toy = Toy { vocab: 3, seed, greedy: false };
        let drafts = drafts(&mut Words::new(seed, 3, &[]));
        for chosen in texts(POINTS.len(), 2 * toy.vocab) {
            let few = || Few { points: &POINTS, chosen: &chosen, vocab: toy.vocab };
            let mut noise = Coupled { key: few() };
            let tree = drafts.propose::<f64>(&toy, &[], &mut noise);
            let mut buffers = Vec::new();
            let mut laws = toy_laws(&toy, &[], &tree, &mut buffers);
            let outcome = matching::verify(&tree, &mut laws, 0, &mut noise).expect("a law");
            let tokens = emitted(&tree, &outcome);
            for (place, token) in tokens.iter().enumerate() {
                let weights = toy.target(&tokens[..place]);
                assert_eq!(few().order(place, &weights)[0], *token, "{drafts:?}, {toy:?}");
            }
            accepted += outcome.path.len();
        }
    }
    assert!(accepted > 30_000, "{accepted} accepted in 109,350 rounds");
}
