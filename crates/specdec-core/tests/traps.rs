//! Mistakes that implementations have shipped, each with the input that shows it, and (where the
//! mistake can be made from outside) the wrong law that it gives, to prove that the input shows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use specdec_core::chances::{Chances, Draw, Draws, Independent, Purpose, accept, invert};
use specdec_core::rng::Key;
use specdec_core::row_ops::Scalar;
use specdec_core::verify::standard;
use specdec_core::{
    DraftTree, History, Law, LawError, Laws, Number, Origin, Outcome, Processors, Sampling,
    Scratch, TokenId, Walk,
};
use specdec_testkit::chi_square::chi_square;
use specdec_testkit::enumerate::{Branches, enumerate};
use specdec_testkit::rational::Rational;
use specdec_testkit::rounds::Verifier;
use specdec_testkit::toy;

const P: [u32; 3] = [5, 3, 2];
const Q: [u32; 3] = [2, 2, 6];

struct Everywhere<N>(Law<N>);

impl<N: Number> Laws<N> for Everywhere<N> {
    fn at(&mut self, _node: Option<usize>) -> Result<&Law<N>, LawError> {
        Ok(&self.0)
    }
}

fn everywhere<N: Number + From<u32>>(weights: &[u32]) -> Everywhere<N> {
    Everywhere(toy::law(weights))
}

fn single<N: Number>(token: TokenId, origin: Origin<N>) -> DraftTree<N> {
    let mut tree = DraftTree::new();
    tree.push(None, token, origin).expect("a child of the context");
    tree
}

fn first<N>(tree: &DraftTree<N>, outcome: &Outcome) -> TokenId {
    outcome.path.first().map_or(outcome.next, |&node| tree.token(node))
}

/// The law of the first token of a round on p = (5, 3, 2) / 10.
fn law_of(draft: impl Fn(&mut Branches) -> DraftTree<Rational>) -> Vec<Rational> {
    let found: BTreeMap<TokenId, Rational> = enumerate(|branches| {
        let tree = draft(branches);
        let outcome = standard::verify(&tree, &mut everywhere(&P), 0, branches).expect("a law");
        first(&tree, &outcome)
    });
    (0..3).map(|token| found.get(&token).cloned().unwrap_or_else(Rational::zero)).collect()
}

fn fractions(list: [&str; 3]) -> Vec<Rational> {
    list.map(|text| text.parse().expect("a fraction")).to_vec()
}

fn draft_token(branches: &mut Branches) -> TokenId {
    branches.draw(Draw::at(Purpose::Draft, None), 0, &toy::law(&Q))
}

#[test]
fn t1_an_arg_max_draft_is_a_point_mass() {
    let right = law_of(|_| single(2, Origin::Deterministic));
    assert_eq!(right, fractions(["1/2", "3/10", "1/5"]));
    // Claimed to be drawn from the soft q, the same token bends the law.
    let wrong = law_of(|_| single(2, Origin::Drawn(Arc::new(toy::law(&Q)))));
    assert_eq!(wrong, fractions(["1/2", "1/6", "1/3"]));
}

#[test]
fn t2_the_residual_is_normalised_not_soft_maxed() {
    let right =
        law_of(|branches| single(draft_token(branches), Origin::Drawn(Arc::new(toy::law(&Q)))));
    // Soft-maxed, it would be (.3924, .3167, .2909).
    assert_eq!(right, fractions(["1/2", "3/10", "1/5"]));
}

/// Independent numbers, except that the residual draw repeats the draft's.
struct Shared(Independent);

impl Draws<f64> for Shared {
    fn draw(&mut self, draw: Draw, position: usize, law: &Law) -> TokenId {
        let draw = match draw.purpose {
            Purpose::Residual => Draw { purpose: Purpose::Draft, ..draw },
            _ => draw,
        };
        self.0.draw(draw, position, law)
    }
}

impl Chances<f64> for Shared {
    fn accept(&mut self, draw: Draw, p: &f64, q: &f64) -> bool {
        self.0.accept(draw, p, q)
    }
}

/// p-value of the first token's law over 100,000 rounds with keyed numbers.
fn p_value<C: Chances<f64>>(chances: impl Fn(Independent) -> C) -> f64 {
    let mut counts = [0; 3];
    let q = Arc::new(toy::law(&Q));
    for committed in 0..100_000 {
        let mut chances = chances(Independent { key: Key { seed: 3, sample: 0 }, committed });
        let token = chances.draw(Draw::at(Purpose::Draft, None), 0, &q);
        let tree = single(token, Origin::Drawn(Arc::clone(&q)));
        let outcome = standard::verify(&tree, &mut everywhere(&P), 0, &mut chances);
        counts[first(&tree, &outcome.expect("a law")) as usize] += 1;
    }
    chi_square(&counts, &[0.5, 0.3, 0.2]).p_value
}

#[test]
fn t3_draft_and_residual_do_not_share_a_number() {
    let right = p_value(|numbers| numbers);
    assert!(right > 1e-9, "{right}");
    let wrong = p_value(Shared);
    assert!(wrong < 1e-9, "the test would not see shared numbers: {wrong}");
}

/// Every number the same.
struct Always(f64);

/// The smallest and the largest number that the generator can give.
const SMALLEST: f64 = 1.0 / (1_u64 << 53) as f64;
const LARGEST: f64 = 1.0 - SMALLEST;

impl Draws<f64> for Always {
    fn draw(&mut self, _draw: Draw, _position: usize, law: &Law) -> TokenId {
        invert(self.0, law)
    }
}

impl Chances<f64> for Always {
    fn accept(&mut self, _draw: Draw, p: &f64, q: &f64) -> bool {
        accept(self.0, *p, *q)
    }
}

#[test]
fn t12_equal_laws_leave_no_residual_and_no_nan() {
    let q: Arc<Law> = Arc::new(toy::law(&P));
    // The same law with other weights, so that the quotients may round differently.
    let scaled = Law::from_dense(vec![0.5, 0.3, 0.2]).expect("a law");
    for (p, token) in [(q.as_ref().clone(), 0), (scaled.clone(), 1), (scaled, 2)] {
        let tree = single(token, Origin::Drawn(Arc::clone(&q)));
        let outcome =
            standard::verify(&tree, &mut Everywhere(p), 0, &mut Always(LARGEST)).expect("a law");
        assert!(outcome.next < 3);
    }
    // A rejection that only rounding can bring about falls back to p: here P(0) = 1 - 2^-53 and
    // q(0) = 1, and u is as large; the rest of p is all that is left.
    let tiny = 1.0 / (1_u64 << 60) as f64;
    let p = Law::from_dense(vec![LARGEST, tiny]).expect("a law");
    let q = Arc::new(Law::one_hot(0));
    let tree = single(0, Origin::Drawn(q));
    let outcome =
        standard::verify(&tree, &mut Everywhere(p), 0, &mut Always(LARGEST)).expect("a law");
    assert_eq!((outcome.walk, outcome.next), (Walk::AllAccepted, 0));
}

/// Rejects everything.
struct Never;

impl Draws<f64> for Never {
    fn draw(&mut self, _draw: Draw, _position: usize, law: &Law) -> TokenId {
        invert(0.5, law)
    }
}

impl Chances<f64> for Never {
    fn accept(&mut self, _draw: Draw, _p: &f64, _q: &f64) -> bool {
        false
    }
}

#[test]
fn t12_a_rejection_without_residual_falls_back_to_p() {
    let law = toy::law::<f64>(&[0, 1, 0]);
    for origin in [Origin::Deterministic, Origin::Drawn(Arc::new(law.clone()))] {
        let tree = single(1, origin);
        for verifier in [Verifier::Standard, Verifier::Traversal] {
            let outcome = verifier.verify(&tree, &mut Everywhere(law.clone()), 0, &mut Never);
            assert_eq!(outcome, Ok(Outcome { path: vec![], next: 1, walk: Walk::Rejected }));
        }
    }
}

#[test]
fn t13_nan_is_a_typed_error_and_never_token_0() {
    let row = [0.0, f32::NAN, 1.0];
    let mut out = Law::one_hot(2);
    for sampling in [Sampling::default(), Sampling::greedy()] {
        let processors = Processors::new(&sampling, 3).expect("in range");
        let (ops, scratch) = (&mut Scalar::default(), &mut Scratch::default());
        match processors.law(&row, History::default().then(&[]), ops, scratch, &mut out) {
            Err(LawError::Logit { token: 1, value }) => assert!(value.is_nan()),
            other => panic!("{other:?}"),
        }
    }
    // A draft law with a NaN cannot be built, so nothing can be scored with it.
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        match Law::from_dense(vec![0.5, bad]) {
            Err(LawError::Weight { token: 1, .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(Law::from_dense(vec![0.0, 0.0]), Err(LawError::NoToken { len: 2 }));
}

#[test]
fn t12_a_second_rejection_without_residual_keeps_what_the_first_has_left() {
    for verifier in [Verifier::Standard, Verifier::Traversal] {
        let mut tree = single(0, Origin::Deterministic);
        tree.push(None, 1, Origin::Deterministic).expect("a new sibling");
        let outcome = verifier.verify(&tree, &mut everywhere(&[3, 2, 0]), 0, &mut Never);
        assert_eq!(outcome.expect("a law").next, 1, "{verifier:?}");
    }
}

/// Laws with a damaged row below the first node.
struct Damaged(Law);

impl Laws for Damaged {
    fn at(&mut self, node: Option<usize>) -> Result<&Law, LawError> {
        match node {
            None => Ok(&self.0),
            Some(_) => Err(LawError::Logit { token: 7, value: f32::NAN }),
        }
    }
}

#[test]
fn t13_a_damaged_row_matters_only_where_the_walk_arrives() {
    let tree = DraftTree::chain(&[0, 0]);
    let verify = |token| {
        let mut laws = Damaged(Law::one_hot(token));
        standard::verify(&tree, &mut laws, 0, &mut Always(LARGEST))
    };
    assert!(verify(1).is_ok());
    assert!(matches!(verify(0), Err(LawError::Logit { token: 7, .. })));
}

#[test]
fn t14_a_forbidden_token_is_rejected_whatever_u() {
    for q in [1.0, 0.5, 1e-300, f64::MIN_POSITIVE, 5e-324, 0.0] {
        assert!(!accept(SMALLEST, 0.0, q), "q = {q}: u * q rounds to 0 and meets p = 0");
    }
    let forbidden = law_of_forbidden();
    assert_eq!(forbidden, [Rational::new(5, 8), Rational::new(3, 8), Rational::zero()]);
}

#[test]
fn t14_a_forbidden_token_is_rejected_even_if_its_draft_probability_underflows() {
    let q = Arc::new(Law::from_dense(vec![5e-324, 2.0]).expect("a law"));
    assert!(q.prob(0) < f64::from_bits(1), "5e-324 / 2 is 0");
    for verifier in [Verifier::Standard, Verifier::Traversal] {
        let tree = single(0, Origin::Drawn(Arc::clone(&q)));
        let outcome =
            verifier.verify(&tree, &mut Everywhere(Law::one_hot(1)), 0, &mut Always(SMALLEST));
        assert_eq!(outcome.map(|outcome| outcome.next), Ok(1), "{verifier:?}");
    }
}

/// A drafter that insists on a token which the target forbids.
fn law_of_forbidden() -> Vec<Rational> {
    let found: BTreeMap<TokenId, Rational> = enumerate(|branches| {
        let tree = single(2, Origin::Deterministic);
        let laws = &mut everywhere(&[5, 3, 0]);
        let outcome = standard::verify(&tree, laws, 0, branches).expect("a law");
        first(&tree, &outcome)
    });
    (0..3).map(|token| found.get(&token).cloned().unwrap_or_else(Rational::zero)).collect()
}
