//! The shipped float path under a coarse generator: u runs over every point of a grid, so the law
//! of the code is known exactly, rounding, strictness of comparisons and all.

use specdec_core::{Number, TokenId};
use specdec_testkit::drafts::{Drafts, Shape};
use specdec_testkit::enumerate::enumerate;
use specdec_testkit::grid::{Fit, Grid, midpoints};
use specdec_testkit::rational::Rational;
use specdec_testkit::rounds::{Verifier, round};
use specdec_testkit::toy::{Toy, Words};

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
        let toy = Toy { vocab: 3, seed };
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
        let toy = Toy { vocab: 4, seed };
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
