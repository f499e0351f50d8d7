//! Typical acceptance: its rule, and that it is as lossy as its name says.

use specdec_core::rng::Key;
use specdec_core::verify::lossy_typical::threshold;
use specdec_core::{DraftTree, Law, LawError, Laws, Method};
use specdec_testkit::toy;

struct Everywhere(Law);

impl Laws for Everywhere {
    fn at(&mut self, _node: Option<usize>) -> Result<&Law, LawError> {
        Ok(&self.0)
    }
}

#[test]
fn the_threshold_shrinks_with_the_entropy() {
    let peaked = threshold(&toy::law::<f64>(&[97, 2, 1]));
    assert_eq!(peaked.to_bits(), 0.09_f64.to_bits());
    assert_eq!(threshold(&toy::law::<f64>(&[5, 3, 2])).to_bits(), 0.09_f64.to_bits());
    assert!((threshold(&toy::law::<f64>(&[1; 100])) - 0.0030).abs() < 1e-4);
}

#[test]
fn the_longest_good_path_is_accepted_and_the_law_is_lost() {
    let key = Key { seed: 0, sample: 0 };
    let mut laws = Everywhere(toy::law(&[50, 45, 5]));
    let mut tree = DraftTree::chain(&[1, 2, 1]);
    let left = tree.merge(None, 0).expect("the context");
    let below = tree.merge(Some(left), 1).expect("a node");
    for position in 0..100 {
        let outcome = Method::LossyTypical.verify(&tree, &mut laws, position, key).expect("a law");
        // Token 2 is under the threshold, so the first path ends at depth 1; and the second one is
        // accepted always, where an exact verifier accepts it with probability 0.5 * 0.45.
        assert_eq!(outcome.path, [left, below]);
    }
}
