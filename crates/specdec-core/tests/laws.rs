//! Exactness by enumeration: every verifier on every shape of draft, whole rounds until three
//! tokens stand, every branch with rational weights. The law of the text must be the target's, as
//! fractions, for every text.

use specdec_core::chances::{Draw, Draws, Purpose};
use specdec_core::verify::matching;
use specdec_core::{Law, Number, TokenId};
use specdec_testkit::drafts::{Drafts, Shape};
use specdec_testkit::enumerate::enumerate;
use specdec_testkit::rational::Rational;
use specdec_testkit::rounds::{ToyLaws, Verifier, emitted, generated, round};
use specdec_testkit::toy::{self, Toy, Words, texts};

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
fn instance(seed: u64, vocab: usize, nodes: usize) -> (Toy, Drafts) {
    let mut words = Words::new(seed, 0, &[]);
    let toy = Toy { vocab: 2 + words.below(vocab - 1), seed };
    let drafts = Drafts {
        shape: Shape::ALL[words.below(4)],
        branching: 1 + words.below(3),
        depth: 1 + words.below(3),
        nodes: 1 + words.below(nodes),
        cut: words.once_in(2),
    };
    (toy, drafts)
}

fn check_seeds(seeds: std::ops::Range<u64>, vocab: usize, nodes: usize) {
    let (mut accepted, mut rejected) = (0, 0);
    for seed in seeds.clone() {
        let (toy, drafts) = instance(seed, vocab, nodes);
        for verifier in Verifier::ALL {
            check(&toy, &drafts, verifier);
            let first = enumerate(|branches| {
                let emitted = round(&toy, &drafts, verifier, &[], branches);
                emitted.len()
            });
            accepted += usize::from(first.keys().any(|&tokens| tokens > 1));
            rejected += usize::from(first.len() > 1);
        }
    }
    // An instance in which nothing is accepted, or nothing rejected, proves little.
    let instances = Verifier::ALL.len() * seeds.count();
    assert!(accepted > instances / 2 && rejected > instances / 2, "{accepted}, {rejected}");
}

#[test]
fn every_verifier_keeps_the_law() {
    check_seeds(0..1_000, 4, 4);
}

#[test]
#[ignore = "minutes: run by make test-exact"]
fn every_verifier_keeps_the_law_on_many_instances() {
    check_seeds(10_000..30_000, 4, 5);
}

/// Noise shared by draft and target: the token at a position is the quantile of its law at one of
/// `points` places, whoever asks.
struct Quantiles<'a> {
    places: &'a [u32],
    points: u32,
}

impl Draws<Rational> for Quantiles<'_> {
    fn draw(&mut self, draw: Draw, position: usize, law: &Law<Rational>) -> TokenId {
        // A second child cannot be the first one's quantile again: it takes the next place.
        let shift = if draw.purpose == Purpose::Draft { draw.draw } else { 0 };
        let place = (self.places[position] + shift) % self.points;
        let target = Rational::new(i64::from(2 * place + 1), u64::from(2 * self.points));
        let mut mass = Rational::zero();
        for (token, weight) in law.iter() {
            mass += weight.clone() / law.total().clone();
            if target < mass {
                return token;
            }
        }
        unreachable!("the mass of a law is 1, above every quantile");
    }
}

/// The text of plain decoding, or of rounds with drafts that see the same noise.
fn coupled_text(toy: &Toy, drafts: Option<&Drafts>, noise: &mut Quantiles) -> Vec<TokenId> {
    let mut text = Vec::new();
    while text.len() < LENGTH {
        let tree = drafts.map(|drafts| drafts.propose(toy, &text, noise)).unwrap_or_default();
        let mut laws = ToyLaws::new(toy, &text, &tree);
        let outcome = matching::verify(&tree, &mut laws, text.len(), noise).expect("a law");
        text.extend(emitted(&tree, &outcome));
    }
    text.truncate(LENGTH);
    text
}

#[test]
fn coupled_text_is_a_function_of_noise_and_target() {
    const POINTS: u32 = 6;
    let mut agreed = 0;
    for seed in 0..100 {
        let (toy, drafts) = instance(seed, 4, 6);
        for noise in texts(POINTS as usize, LENGTH) {
            // Drafts look beyond the text: their positions need noise too.
            let places = [noise.as_slice(), &[0; 4]].concat();
            let mut noise = Quantiles { places: &places, points: POINTS };
            let plain = coupled_text(&toy, None, &mut noise);
            assert_eq!(coupled_text(&toy, Some(&drafts), &mut noise), plain, "{toy:?}, {drafts:?}");
            let first = noise.draw(Draw::at(Purpose::Draft, None), 0, &toy::law(&toy.draft(&[])));
            agreed += usize::from(first == plain[0]);
        }
    }
    assert!(agreed > 10_000, "coupled drafts agree often: {agreed} of 21,600");
}
