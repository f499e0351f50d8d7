//! The two families of keyed numbers: disjoint, never reused, and with the laws they claim.

use std::collections::HashSet;

use serde_json::Value;
use specdec_core::chances::{Chances, Coupled, Draw, Draws, Independent, Purpose, accept, invert};
use specdec_core::rng::Key;
use specdec_core::{Law, TokenId, math};
use specdec_testkit::chi_square::chi_square;
use specdec_testkit::drafts::{Drafts, Shape};
use specdec_testkit::ledger::Ledger;
use specdec_testkit::rounds::{Verifier, round};
use specdec_testkit::toy::{self, Toy, Words};

const SMALLEST: f64 = 1.0 / (1_u64 << 53) as f64;

fn key(seed: u64) -> Key {
    Key { seed, sample: 0 }
}

#[test]
fn an_impossible_token_is_never_accepted_or_drawn() {
    assert!(!accept(SMALLEST, 0.0, 1.0));
    assert!(!accept(SMALLEST, 0.0, 0.0));
    assert!(accept(SMALLEST, f64::MIN_POSITIVE, f64::MIN_POSITIVE));
    assert!(accept(1.0 - SMALLEST, 0.3, 0.3));
    let law = Law::from_dense(vec![0.0, 0.5, 0.0, 0.5, 0.0]).expect("a law");
    assert_eq!(invert(SMALLEST, &law), 1);
    assert_eq!(invert(0.5 - SMALLEST, &law), 1);
    assert_eq!(invert(0.5, &law), 3);
    assert_eq!(invert(1.0 - SMALLEST, &law), 3);
    for position in 0..1000 {
        assert!([1, 3].contains(&Coupled { key: key(1) }.race(position, &law)));
    }
}

#[test]
fn rounding_does_not_run_past_the_last_token() {
    // Ten times 0.1 sums to less than 1: the cumulated mass can stay under u * total.
    let law = Law::from_dense([vec![0.1; 10], vec![0.0; 3]].concat()).expect("a law");
    assert_eq!(invert(1.0 - SMALLEST, &law), 9);
}

#[test]
fn the_families_share_no_counter() {
    let mut seen = HashSet::new();
    let purposes = [Purpose::Accept, Purpose::Residual, Purpose::Target, Purpose::Draft];
    for sample in [0, 1, u32::MAX] {
        for word in [0, 1, 2, 255, u32::MAX] {
            let key = Key { seed: 0, sample };
            for purpose in purposes {
                for draw in [0, 1, (1 << 24) - 1] {
                    for node in [0, 1, 2, u32::MAX] {
                        let draw = Draw { purpose, node, draw };
                        assert!(seen.insert(Independent { key, committed: word }.counter(draw)));
                    }
                }
            }
            for pair in [0, 1, (1 << 24) - 1] {
                assert!(seen.insert(Coupled { key }.counter(word as usize, pair)));
            }
        }
    }
}

/// All numbers that a request may ask for: rounds of every verifier and shape, text after text.
fn no_number_twice(seeds: std::ops::Range<u64>) {
    let mut steps = 0;
    for seed in seeds.clone() {
        let mut words = Words::new(seed, 0, &[]);
        let toy = Toy { vocab: 6, seed, greedy: false };
        for sample in 0..2 {
            let mut ledger = Ledger::default();
            let mut context = vec![0];
            for step in 0..100 {
                let drafts = Drafts {
                    shape: Shape::ALL[words.below(Shape::ALL.len())],
                    branching: 1 + words.below(4),
                    depth: words.below(4),
                    nodes: 12,
                    cut: words.once_in(2),
                };
                let key = Key { seed, sample };
                let mut numbers = ledger.step(key, context.len() as u32);
                let verifier = Verifier::ALL[step % Verifier::ALL.len()];
                context.extend(round(&toy, &drafts, verifier, &context.clone(), &mut numbers));
                steps += 1;
            }
            assert!(ledger.len() > 200, "{} numbers", ledger.len());
        }
    }
    assert_eq!(steps, 200 * seeds.count());
}

#[test]
fn no_counter_of_the_rejection_family_is_used_twice() {
    no_number_twice(0..40);
}

#[test]
#[ignore = "a million steps: run by make test-exact"]
fn no_counter_is_used_twice_in_a_million_steps() {
    no_number_twice(1_000..6_000);
}

#[test]
fn a_plain_step_draws_one_number() {
    let toy = Toy { vocab: 4, seed: 3, greedy: false };
    let drafts = Drafts { shape: Shape::Drawn, branching: 1, depth: 0, nodes: 0, cut: false };
    for verifier in Verifier::ALL {
        let mut ledger = Ledger::default();
        round(&toy, &drafts, verifier, &[1, 2], &mut ledger.step(key(0), 2));
        assert_eq!(ledger.len(), 1);
    }
}

#[test]
#[should_panic(expected = "was used before")]
fn the_ledger_sees_a_counter_used_twice() {
    let law = Law::one_hot(0);
    let mut ledger = Ledger::default();
    let draw = Draw::at(Purpose::Target, None);
    ledger.step(key(0), 5).draw(draw, 5, &law);
    ledger.step(key(0), 5).draw(draw, 5, &law);
}

/// The race without its short cut.
fn race(noise: Coupled, position: usize, law: &Law) -> TokenId {
    let score = |token, weight: f64| {
        let u = noise.uniform(position, token);
        (-math::ln(u)).max(1.0 - u) / weight
    };
    let possible = law.iter().filter(|(_, weight)| **weight > 0.0);
    let scores = possible.map(|(token, &weight)| (score(token, weight), token));
    scores.min_by(|a, b| a.partial_cmp(b).expect("finite")).expect("a token").1
}

#[test]
fn the_short_cut_of_the_race_never_changes_the_winner() {
    for seed in 0..200 {
        let mut words = Words::new(seed, 0, &[]);
        let vocab = 1 + words.below(300);
        let mut weights: Vec<f64> =
            (0..vocab).map(|_| f64::from(words.word()).powi(1 + seed as i32 % 8)).collect();
        weights[0] = 1.0;
        if seed == 0 {
            // Many alike: the winners have u close to 1, where the short cut is close to a tie.
            weights = vec![1.0; 1000];
        }
        let dense = Law::from_dense(weights.clone()).expect("a law");
        let ids = (0..weights.len() as TokenId).map(|id| 3 * id + id % 2).collect();
        let sparse = Law::from_sparse(ids, weights).expect("a law");
        for position in 0..if seed == 0 { 5_000 } else { 50 } {
            let noise = Coupled { key: key(seed) };
            assert_eq!(noise.race(position, &dense), race(noise, position, &dense));
            assert_eq!(noise.race(position, &sparse), race(noise, position, &sparse));
        }
    }
}

/// Level of every statistical test here; seeds are fixed, so each either always or never passes.
const LEVEL: f64 = 1e-9;

#[test]
fn each_family_draws_from_the_law() {
    let weights = [5.0, 0.0, 3.0, 1.5, 0.5, 0.25];
    let law = Law::from_dense(weights.to_vec()).expect("a law");
    let probabilities: Vec<f64> = (0..6).map(|token| law.prob(token)).collect();
    let count = |draw: &mut dyn FnMut(usize) -> TokenId| {
        let mut counts = [0; 6];
        (0..200_000).for_each(|i| counts[draw(i) as usize] += 1);
        chi_square(&counts, &probabilities)
    };
    let independent = count(&mut |i| {
        let mut numbers = Independent { key: key(7), committed: i as u32 };
        numbers.draw(Draw::at(Purpose::Target, None), i, &law)
    });
    let coupled = count(&mut |i| Coupled { key: key(7) }.race(i, &law));
    let samples = count(&mut |i| Coupled { key: Key { seed: 7, sample: i as u32 } }.race(0, &law));
    for test in [independent, coupled, samples] {
        assert!(test.p_value > LEVEL, "{test:?}");
    }
}

/// Frequency within 6 standard deviations of its expectation.
fn assert_frequency(hits: u64, trials: u64, expected: f64) {
    let deviation = (expected * (1.0 - expected) / trials as f64).sqrt();
    let found = hits as f64 / trials as f64;
    assert!((found - expected).abs() < 6.0 * deviation, "{found}, expected {expected}");
}

#[test]
fn coupled_draft_and_target_agree_as_often_as_the_formula_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/verify.json");
    let text = std::fs::read_to_string(path).expect("the vectors");
    let vectors: Value = serde_json::from_str(&text).expect("json");
    let case = &vectors["coupled"][0];
    let weights = |name: &str| -> Vec<u32> {
        case[name].as_array().unwrap().iter().map(|w| w.as_u64().unwrap() as u32).collect()
    };
    let (p, q): (Law, Law) = (toy::law(&weights("p")), toy::law(&weights("q")));
    // sum over x of 1 / sum over y of max(p_y / p_x, q_y / q_x)
    let expected: f64 = (0..3)
        .map(|x| {
            let ratio = |y| (p.prob(y) / p.prob(x)).max(q.prob(y) / q.prob(x));
            1.0 / (0..3).map(ratio).sum::<f64>()
        })
        .sum();
    assert!((expected - 49.0 / 85.0).abs() < 1e-15, "{} by the formula", case["match"]);
    let noise = Coupled { key: key(11) };
    let hits = (0..300_000).filter(|&i| noise.race(i, &p) == noise.race(i, &q)).count();
    assert_frequency(hits as u64, 300_000, expected);
}

#[test]
fn the_ratio_test_accepts_as_often_as_it_should() {
    let hits = (0..300_000).filter(|&i| {
        let mut numbers = Independent { key: key(5), committed: i };
        numbers.accept(Draw::at(Purpose::Accept, Some(3)), &0.2, &0.7)
    });
    assert_frequency(hits.count() as u64, 300_000, 2.0 / 7.0);
}
