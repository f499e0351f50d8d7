//! What can be accepted at one place: golden numbers, and against the verifiers by enumeration.

use std::sync::Arc;

use specdec_core::bounds::{
    best_acceptance, best_acceptance_without_replacement, chain_acceptance, coupled_acceptance,
    matching_acceptance,
};
use specdec_core::chances::{Draw, Draws, Purpose};
use specdec_core::verify::kseq::{KSeq, best_rho};
use specdec_core::verify::standard;
use specdec_core::{DraftTree, Law, LawError, Laws, Number};
use specdec_testkit::enumerate::{Branches, enumerate};
use specdec_testkit::rational::Rational;
use specdec_testkit::toy::{self, Toy};

const P: [u32; 3] = [5, 3, 2];
const Q: [u32; 3] = [2, 2, 6];

fn exact(weights: &[u32]) -> Law<Rational> {
    toy::law(weights)
}

fn fraction(text: &str) -> Rational {
    text.parse().expect("a fraction")
}

#[test]
fn golden_numbers() {
    let (p, q) = (exact(&P), exact(&Q));
    assert_eq!(chain_acceptance(&p, &q), fraction("3/5"));
    assert_eq!(matching_acceptance(&p, &q), fraction("7/25"));
    assert_eq!(coupled_acceptance(&p, &q), fraction("49/85"));
    assert_eq!(best_acceptance(&p, &q, 1), fraction("3/5"));
    assert_eq!(best_acceptance(&p, &q, 2), fraction("21/25"));
    assert_eq!(best_acceptance_without_replacement(&p, &q, 2), Rational::one());
    let (p, q) = (toy::law::<f64>(&P), toy::law::<f64>(&Q));
    for (drafts, rho, beta, acceptance, residual) in [
        (2, 1.46332, 0.53668, 0.78533, [0.96583, 0.03417]),
        (4, 2.03004, 0.4463, 0.90601, [1.0, 0.0]),
    ] {
        let found = best_rho(&p, &q, drafts);
        let kseq = KSeq::new(&p, &q, drafts, found);
        let law = kseq.residual().expect("a residual");
        let pairs = [
            (found, rho),
            (kseq.beta(), beta),
            (kseq.acceptance(), acceptance),
            (law.prob(0), residual[0]),
            (law.prob(1), residual[1]),
        ];
        assert!(pairs.iter().all(|(a, b)| (a - b).abs() < 1e-5), "{pairs:?}");
    }
}

/// Laws of random places: zeros, ties, certain tokens, p = q, disjoint.
fn places() -> impl Iterator<Item = (Law<Rational>, Law<Rational>)> {
    (0..1_000).map(|seed| {
        let toy = Toy { vocab: 2 + seed as usize % 3, seed, greedy: false };
        (exact(&toy.target(&[])), exact(&toy.draft(&[])))
    })
}

struct Everywhere<'a>(&'a Law<Rational>);

impl Laws<Rational> for Everywhere<'_> {
    fn at(&mut self, _node: Option<usize>) -> Result<&Law<Rational>, LawError> {
        Ok(self.0)
    }
}

/// The probability that `standard` accepts one of `count` children.
fn accepted(p: &Law<Rational>, q: &Law<Rational>, count: usize, repeats: bool) -> Rational {
    let q = Arc::new(q.clone());
    let law = enumerate(|branches| {
        let mut tree = DraftTree::new();
        if repeats {
            tree.draw_independent(None, &q, count, 0, branches);
        } else {
            tree.draw(None, &q, count, 0, branches);
        }
        standard::verify(&tree, &mut Everywhere(p), 0, branches).expect("a law").path.len()
    });
    law.get(&1).cloned().unwrap_or_else(Rational::zero)
}

#[test]
fn no_verifier_is_above_its_bound_and_one_draft_meets_it() {
    let mut below = 0;
    for (p, q) in places() {
        assert_eq!(accepted(&p, &q, 1, false), chain_acceptance(&p, &q));
        assert_eq!(best_acceptance(&p, &q, 1), chain_acceptance(&p, &q));
        for count in [2, 3] {
            let (with, without) = (accepted(&p, &q, count, true), accepted(&p, &q, count, false));
            let (bound, tight) = (
                best_acceptance(&p, &q, count),
                best_acceptance_without_replacement(&p, &q, count),
            );
            assert!(with <= bound && without <= tight, "{p:?} {q:?}");
            below += u32::from(with < bound);
        }
        assert!(coupled_acceptance(&p, &q) <= chain_acceptance(&p, &q), "{p:?} {q:?}");
    }
    assert!(below > 100, "strictly below on {below}");
}

#[test]
fn the_coupled_formula_is_the_sum_over_all_pairs() {
    for (p, q) in places() {
        let ids = || p.iter().map(|(id, _)| id);
        let both = |x| p.prob(x) > Rational::zero() && q.prob(x) > Rational::zero();
        let larger = |x, y| {
            let (a, b) = (p.prob(y) / p.prob(x), q.prob(y) / q.prob(x));
            if a > b { a } else { b }
        };
        let total = |x| ids().fold(Rational::zero(), |sum, y| sum + larger(x, y));
        let expected = ids()
            .filter(|&x| both(x))
            .fold(Rational::zero(), |sum, x| sum + Rational::one() / total(x));
        assert_eq!(coupled_acceptance(&p, &q), expected, "{p:?} {q:?}");
    }
}

/// A fraction a little above the least rho.
fn rho(p: &Law<Rational>, q: &Law<Rational>, drafts: usize) -> Rational {
    (0..=400)
        .map(|i| Rational::new(100 + i, 100))
        .find(|rho| {
            let kseq = KSeq::new(p, q, drafts, rho.clone());
            kseq.acceptance() <= rho.clone() * kseq.beta()
        })
        .expect("rho = k always does")
}

fn kseq_round(kseq: &KSeq<Rational>, q: &Law<Rational>, drafts: usize, b: &mut Branches) -> u32 {
    let draw = |i| Draw { draw: i, ..Draw::at(Purpose::Draft, None) };
    let drafted: Vec<u32> = (0..drafts as u32).map(|i| b.draw(draw(i), 0, q)).collect();
    kseq.choose(&drafted, 0, b).1
}

#[test]
fn kseq_keeps_the_law() {
    for (p, q) in places() {
        for drafts in [1, 2, 3] {
            let kseq = KSeq::new(&p, &q, drafts, rho(&p, &q, drafts));
            let law = enumerate(|branches| kseq_round(&kseq, &q, drafts, branches));
            for (token, _) in p.iter() {
                let found = law.get(&token).cloned().unwrap_or_else(Rational::zero);
                assert_eq!(found, p.prob(token), "{p:?} {q:?} {drafts} {kseq:?}");
            }
        }
    }
}

#[test]
fn kseq_accepts_what_it_says_and_a_rho_too_small_is_biased() {
    let (p, q) = (exact(&P), exact(&Q));
    let accepted = |kseq: &KSeq<Rational>| {
        let law = enumerate(|branches| {
            let drafted = [0, 1]
                .map(|i| branches.draw(Draw { draw: i, ..Draw::at(Purpose::Draft, None) }, 0, &q));
            kseq.choose(&drafted, 0, branches).0.is_some()
        });
        law.get(&true).cloned().unwrap_or_else(Rational::zero)
    };
    let fine = KSeq::new(&p, &q, 2, Rational::new(3, 2));
    assert_eq!(accepted(&fine), fine.acceptance());
    let small = KSeq::new(&p, &q, 2, Rational::one());
    let law = enumerate(|branches| kseq_round(&small, &q, 2, branches));
    assert_ne!(law.get(&0), Some(&p.prob(0)), "the test would not see a rho that is too small");
}

#[test]
fn disjoint_laws_accept_nothing() {
    let (p, q) = (toy::law::<f64>(&[1, 0]), toy::law::<f64>(&[0, 1]));
    assert!((best_rho(&p, &q, 3) - 1.0).abs() < 1e-12);
    assert_eq!(KSeq::new(&p, &q, 3, 1.0).acceptance().to_bits(), 0);
    assert_eq!(best_acceptance(&p, &q, 3).to_bits(), 0);
}
