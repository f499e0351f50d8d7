//! Exactness by enumeration: every verifier on every shape of draft, whole rounds until three
//! tokens stand, every branch with rational weights. The law of the text must be the target's, as
//! fractions, for every text.

use specdec_core::Number;
use specdec_testkit::drafts::{Drafts, Shape};
use specdec_testkit::rational::Rational;
use specdec_testkit::rounds::{Verifier, generated};
use specdec_testkit::toy::{Toy, Words, texts};

const LENGTH: usize = 3;

/// Compares the law of one instance, text by text.
fn check(toy: &Toy, drafts: &Drafts, verifier: Verifier) {
    let law = generated(toy, drafts, verifier, LENGTH);
    for text in texts(toy.vocab, LENGTH) {
        let expected = toy.probability::<Rational>(&[], &text);
        let found = law.get(&text).cloned().unwrap_or_else(Rational::zero);
        assert_eq!(found, expected, "{text:?} with {verifier:?}, {drafts:?}, {toy:?}");
    }
}

/// The instance of a seed: vocabulary, shape and size of the drafts, all laws.
fn instance(seed: u64, largest: usize) -> (Toy, Drafts) {
    let mut words = Words::new(seed, 0, &[]);
    let toy = Toy { vocab: 2 + words.below(largest - 1), seed };
    let drafts = Drafts {
        shape: Shape::ALL[words.below(4)],
        branching: 1 + words.below(3),
        depth: 1 + words.below(3),
        nodes: 1 + words.below(4),
        cut: words.below(2) == 0,
    };
    (toy, drafts)
}

fn check_seeds(seeds: std::ops::Range<u64>, largest: usize) {
    for seed in seeds {
        let (toy, drafts) = instance(seed, largest);
        for verifier in Verifier::ALL {
            check(&toy, &drafts, verifier);
        }
    }
}

#[test]
fn every_verifier_keeps_the_law() {
    check_seeds(0..300, 3);
    check_seeds(300..320, 4);
}

#[test]
#[ignore = "minutes: run by make test-exact"]
fn every_verifier_keeps_the_law_on_many_instances() {
    check_seeds(0..5_000, 4);
}
