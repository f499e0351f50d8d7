//! Children drawn without replacement: the quick ways of the keyed numbers against the slow one.

use std::sync::Arc;

use specdec_core::chances::{Coupled, Draw, Draws, Independent, Purpose};
use specdec_core::rng::Key;
use specdec_core::{DraftTree, Law, Origin, TokenId};
use specdec_testkit::toy::Words;

/// Draws as the trait defines them: from a copy of what is left, one by one.
struct Slow<D>(D);

impl<D: Draws<f64>> Draws<f64> for Slow<D> {
    fn draw(&mut self, draw: Draw, position: usize, law: &Law) -> TokenId {
        self.0.draw(draw, position, law)
    }
}

fn random_law(words: &mut Words) -> Law {
    let vocab = 1 + words.below(40);
    let mut weights: Vec<f64> = (0..vocab)
        .map(|_| if words.once_in(4) { 0.0 } else { 2.0_f64.powi(-(words.below(30) as i32)) })
        .collect();
    weights[0] = 1.0;
    if words.once_in(2) {
        return Law::from_dense(weights).expect("a law");
    }
    let ids = (0..vocab as TokenId).map(|id| 3 * id + id % 2).collect();
    Law::from_sparse(ids, weights).expect("a law")
}

#[test]
fn quick_draws_are_the_slow_ones() {
    let mut cut_short = 0;
    for seed in 0..3_000 {
        let mut words = Words::new(seed, 0, &[]);
        let law = random_law(&mut words);
        let key = Key { seed, sample: 0 };
        let count = 1 + words.below(5);
        let taken = [3, 0, 7].map(|token| token * u32::from(words.once_in(2)));
        let draw = Draw { draw: 3, ..Draw::at(Purpose::Draft, Some(1)) };
        let independent = Independent { key, committed: 9 };
        let quick = { independent }.draw_without(draw, 11, &law, &taken, count);
        assert_eq!(quick, Slow(independent).draw_without(draw, 11, &law, &taken, count), "{law:?}");
        cut_short += usize::from(quick.len() < count);
        let quick = Coupled { key }.draw_without(draw, 11, &law, &taken, count);
        assert_eq!(quick, Slow(Coupled { key }).draw_without(draw, 11, &law, &taken, count));
    }
    assert!(cut_short > 100, "{cut_short} laws ran out");
}

#[test]
fn what_is_left_is_no_rounding_error() {
    // Beside 1 the first vanish altogether; the second leave a difference of a few bits.
    for tiny in [2.0_f64.powi(-60), 0.3 * 2.0_f64.powi(-50)] {
        let law = Law::from_dense(vec![1.0, tiny, 3.0 * tiny]).expect("a law");
        assert_eq!(law.left(&[0]).to_bits(), (tiny + 3.0 * tiny).to_bits());
        assert_eq!(law.left(&[0, 0, 2]).to_bits(), tiny.to_bits());
        assert_eq!(law.left(&[0, 1, 2, 9]).to_bits(), 0);
        assert_eq!(law.left(&[]).to_bits(), law.total().to_bits());
    }
}

#[test]
fn a_tree_grows_in_drawn_order_and_deterministic_tokens_join_it() {
    let q = Arc::new(Law::from_dense(vec![4.0, 2.0, 1.0, 0.0]).expect("a law"));
    let mut numbers = Independent { key: Key { seed: 5, sample: 0 }, committed: 2 };
    let mut tree = DraftTree::new();
    let first = tree.draw(None, &q, 1, 2, &mut numbers);
    let node = tree.merge(None, 3).expect("the context");
    let rest = tree.draw(None, &q, 9, 2, &mut numbers);
    assert_eq!((first, node, rest), (vec![0], 1, vec![2, 3]));
    let tokens: Vec<_> = (0..4).map(|node| tree.token(node)).collect();
    assert_eq!(tokens.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{tokens:?}");
    // A token that is there stays what it was.
    assert_eq!(tree.merge(None, tree.token(2)), Ok(2));
    assert!(matches!(tree.origin(2), Origin::Drawn(_)));
    assert!(tree.draw(None, &q, 1, 2, &mut numbers).is_empty(), "all tokens are taken");
    let again = tree.draw_independent(Some(2), &q, 20, 2, &mut numbers);
    assert_eq!(again.len(), 20, "tokens may repeat");
}

#[test]
fn every_draw_of_a_tree_has_its_own_number() {
    let q = Arc::new(Law::from_dense(vec![1.0; 64]).expect("a law"));
    let mut ledger = specdec_testkit::ledger::Ledger::default();
    let mut numbers = ledger.step(Key { seed: 1, sample: 0 }, 4);
    let mut tree = DraftTree::new();
    for parent in [None, Some(0), Some(1)] {
        tree.draw(parent, &q, 2, 4, &mut numbers);
        tree.merge(parent, 1).expect("a parent");
        tree.draw(parent, &q, 2, 4, &mut numbers);
        tree.draw_independent(parent, &q, 2, 4, &mut numbers);
    }
    assert_eq!(ledger.len(), 18);
}
