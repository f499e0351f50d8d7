//! The trees of `tests/vectors/verify_*.json`: every implementation gives the same laws and, for the
//! same keys, the same outcomes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use specdec_core::rng::Key;
use specdec_core::verify::{standard, traversal};
use specdec_core::{DraftTree, Law, LawError, Laws, Method, Number, Origin, TokenId};
use specdec_testkit::enumerate::enumerate;
use specdec_testkit::rational::Rational;
use specdec_testkit::toy;

fn read(name: &str) -> Vec<Value> {
    let path = format!("{}/../../tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(&path);
    let document: Value = serde_json::from_str(&text).expect(&path);
    document["cases"].as_array().expect("cases").clone()
}

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().expect("a list").iter().map(|x| x.as_i64().expect("an integer")).collect()
}

fn law<N: Number + From<u32>>(weights: &Value) -> Law<N> {
    toy::law(&integers(weights).into_iter().map(|w| w as u32).collect::<Vec<_>>())
}

/// The target's laws of a case.
struct CaseLaws<N>(Vec<Law<N>>);

impl<N: Number> Laws<N> for CaseLaws<N> {
    fn at(&mut self, node: Option<usize>) -> Result<&Law<N>, LawError> {
        Ok(&self.0[node.map_or(0, |node| node + 1)])
    }
}

fn parse<N: Number + From<u32>>(case: &Value) -> (DraftTree<N>, CaseLaws<N>) {
    let laws = case["p"].as_array().expect("laws").iter().map(law).collect();
    let mut tree = DraftTree::new();
    for (i, token) in integers(&case["tokens"]).into_iter().enumerate() {
        let parent = usize::try_from(integers(&case["parents"])[i]).ok();
        let origin = match &case["q"][i] {
            Value::Null => Origin::Deterministic,
            weights => Origin::Drawn(Arc::new(law(weights))),
        };
        tree.push(parent, token as TokenId, origin).expect("a tree");
    }
    (tree, CaseLaws(laws))
}

fn outcome(value: &Value) -> (Vec<usize>, TokenId) {
    let path = integers(&value["path"]).into_iter().map(|node| node as usize).collect();
    (path, value["next"].as_u64().expect("a token") as TokenId)
}

#[test]
fn laws_of_outcomes() {
    for (name, bottom_up) in
        [("verify_standard", false), ("verify_block", true), ("verify_traversal", true)]
    {
        for case in read(name) {
            let (tree, mut laws) = parse::<Rational>(&case);
            let found = enumerate(|branches| {
                let outcome = if bottom_up {
                    traversal::verify(&tree, &mut laws, 0, branches)
                } else {
                    standard::verify(&tree, &mut laws, 0, branches)
                };
                outcome.map(|outcome| (outcome.path, outcome.next)).expect("a law")
            });
            let listed = case["law"].as_array().expect("a law").iter();
            let expected: BTreeMap<_, Rational> = listed
                .map(|entry| {
                    let text = entry["probability"].as_str().expect("a fraction");
                    (outcome(entry), text.parse().expect("a fraction"))
                })
                .collect();
            assert_eq!(found, expected, "{name} {}", case["id"]);
        }
    }
}

#[test]
fn outcomes_of_keys() {
    let mut compared = 0;
    for case in read("verify_keyed") {
        let (tree, mut laws) = parse::<f64>(&case);
        let method = match case["method"].as_str() {
            Some("greedy") => Method::Greedy,
            Some("coupled") => Method::Coupled,
            Some("standard") => Method::Standard,
            Some("block" | "traversal") => Method::Traversal,
            other => panic!("{other:?}"),
        };
        if method == Method::Greedy {
            laws.0.iter_mut().for_each(|law| *law = Law::one_hot(arg_max(law)));
        }
        for entry in case["outcomes"].as_array().expect("outcomes") {
            let key = Key { seed: entry["seed"].as_u64().expect("a seed"), sample: 0 };
            let position = entry["position"].as_u64().expect("a position") as usize;
            let found = method.verify(&tree, &mut laws, position, key).expect("a law");
            assert_eq!((found.path, found.next), outcome(entry), "{} {entry}", case["id"]);
            compared += 1;
        }
    }
    assert!(compared >= 500, "{compared} outcomes");
}

fn arg_max(law: &Law) -> TokenId {
    law.iter().fold((0, -1.0), |best, (id, &w)| if w > best.1 { (id, w) } else { best }).0
}
