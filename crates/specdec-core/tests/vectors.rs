//! The language-neutral vectors of `tests/vectors`, against the code that ships and by enumeration.

use std::sync::Arc;

use serde_json::Value;
use specdec_core::chances::{Coupled, Draw, Draws, Independent, Purpose};
use specdec_core::rng::{Key, philox, uniform};
use specdec_core::row_ops::Scalar;
use specdec_core::{
    DraftTree, History, Law, LawError, Laws, Number, Origin, Processors, Sampling, Scratch, TokenId,
};
use specdec_testkit::enumerate::{Branches, enumerate};
use specdec_testkit::rational::Rational;
use specdec_testkit::rounds::Verifier;
use specdec_testkit::toy;

fn read(name: &str) -> Value {
    let path = format!("{}/../../tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).expect(&path)).expect(&path)
}

fn list<T>(value: &Value, item: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().expect("an array").iter().map(item).collect()
}

fn fraction(value: &Value) -> Rational {
    value.as_str().expect("a fraction").parse().expect("a fraction")
}

fn weights(value: &Value) -> Vec<u32> {
    list(value, |w| w.as_u64().expect("a weight") as u32)
}

/// The same law everywhere.
struct Everywhere(Law<Rational>);

impl Laws<Rational> for Everywhere {
    fn at(&mut self, _node: Option<usize>) -> Result<&Law<Rational>, LawError> {
        Ok(&self.0)
    }
}

/// The draft of a case.
fn propose(case: &Value, branches: &mut Branches) -> DraftTree<Rational> {
    let mut tree = DraftTree::new();
    if case["draft"] == "deterministic" {
        for token in weights(&case["tokens"]) {
            tree.push(None, token, Origin::Deterministic).expect("a new sibling");
        }
        return tree;
    }
    let q = Arc::new(toy::law::<Rational>(&weights(&case["q"])));
    let mut frontier = vec![None];
    while let Some(parent) = frontier.pop() {
        let depth = parent.map_or(0, |parent| tree.depth(parent));
        if depth as u64 == case["depth"].as_u64().expect("a depth") {
            continue;
        }
        let mut taken = Vec::new();
        for _ in 0..case["children"].as_u64().expect("a number of children") {
            let left = q.without(&taken).expect("something left");
            let token = branches.draw(Draw::at(Purpose::Draft, parent), depth, &left);
            let child = tree.push(parent, token, Origin::Drawn(Arc::clone(&q)));
            frontier.push(Some(child.expect("a new sibling")));
            taken.push(token);
        }
    }
    tree
}

#[test]
fn verifiers() {
    for case in list(&read("verify")["cases"], Value::clone) {
        let verifier = match case["verifier"].as_str() {
            Some("standard") => Verifier::Standard,
            Some("matching") => Verifier::Matching,
            Some("traversal") => Verifier::Traversal,
            other => panic!("{other:?}"),
        };
        let p = toy::law::<Rational>(&weights(&case["p"]));
        let mut laws = Everywhere(p.clone());
        let law = enumerate(|branches| {
            let tree = propose(&case, branches);
            let outcome = verifier.verify(&tree, &mut laws, 0, branches).expect("a law");
            let first = outcome.path.first().map_or(outcome.next, |&node| tree.token(node));
            (outcome.path.len() as u32, first)
        });
        check_case(&case, &p, &law);
    }
}

type Found = std::collections::BTreeMap<(u32, TokenId), Rational>;

fn check_case(case: &Value, p: &Law<Rational>, found: &Found) {
    let id = &case["id"];
    let sum = |keep: &dyn Fn(u32, TokenId) -> bool| {
        let kept = found.iter().filter(|((length, token), _)| keep(*length, *token));
        kept.fold(Rational::zero(), |sum, (_, weight)| sum + weight.clone())
    };
    let accepted = found.iter().fold(Rational::zero(), |sum, ((length, _), weight)| {
        sum + weight.clone() * Rational::from(*length)
    });
    assert_eq!(accepted, fraction(&case["accepted"]), "{id}: accepted");
    for (token, _) in p.iter() {
        assert_eq!(sum(&|_, first| first == token), p.prob(token), "{id}: law of {token}");
    }
    if let Some(residual) = case.get("residual") {
        let rejected = sum(&|length, _| length == 0);
        for (token, expected) in list(residual, fraction).into_iter().enumerate() {
            let part = sum(&|length, first| length == 0 && first == token as TokenId);
            assert_eq!(part, expected * rejected.clone(), "{id}: residual at {token}");
        }
    }
}

fn optional(case: &Value, name: &str) -> Vec<u32> {
    case.get(name).map(weights).unwrap_or_default()
}

fn sampling(case: &Value) -> Sampling {
    let number = |name: &str, default| case.get(name).map_or(default, |v| v.as_f64().unwrap());
    let bias = case.get("logit_bias").map(|bias| {
        let pair = |(id, bias): (&String, &Value)| (id.parse().unwrap(), bias.as_f64().unwrap());
        bias.as_object().unwrap().iter().map(pair).collect()
    });
    Sampling {
        temperature: number("temperature", 1.0),
        top_k: number("top_k", 0.0) as u32,
        top_p: number("top_p", 1.0),
        min_p: number("min_p", 0.0),
        repetition_penalty: number("repetition_penalty", 1.0),
        frequency_penalty: number("frequency_penalty", 0.0),
        presence_penalty: number("presence_penalty", 0.0),
        logit_bias: bias.unwrap_or_default(),
        allowed_token_ids: case.get("allowed_token_ids").map(weights),
        bad_words: case.get("bad_words").map(|words| list(words, weights)).unwrap_or_default(),
        min_tokens: number("min_tokens", 0.0) as usize,
        end_token_ids: optional(case, "stop_token_ids"),
    }
}

#[test]
fn processors() {
    for case in list(&read("processors")["cases"], Value::clone) {
        let row: Vec<f32> = list(&case["weights"], |w| w.as_f64().expect("a weight").ln() as f32);
        let processors = Processors::new(&sampling(&case), row.len()).expect("in range");
        let mut history = History::new(&optional(&case, "prompt"));
        for token in optional(&case, "output") {
            history.push(token);
        }
        // Drafted tokens weigh the same as committed ones.
        let path = optional(&case, "path");
        let mut found = Law::one_hot(0);
        let (ops, scratch) = (&mut Scalar::default(), &mut Scratch::default());
        processors.law(&row, history.then(&path), ops, scratch, &mut found).expect("a law");
        for (token, expected) in list(&case["law"], fraction).into_iter().enumerate() {
            let (p, expected) = (found.prob(token as TokenId), expected.to_f64());
            // Logits are f32: an error of half a unit in the last place of ln 50 is 2.4e-7.
            assert!((p - expected).abs() <= 1e-6 * expected, "{}: {token}: {p}", case["id"]);
        }
    }
}

#[test]
fn philox_known_answers() {
    let hex = |v: &Value| u32::from_str_radix(v.as_str().expect("hex"), 16).expect("hex");
    let vectors = read("philox");
    for case in list(&vectors["blocks"], Value::clone) {
        let counter = list(&case["counter"], hex).try_into().expect("four words");
        let key = list(&case["key"], hex).try_into().expect("two words");
        assert_eq!(philox(counter, key).to_vec(), list(&case["output"], hex));
    }
    for case in list(&vectors["uniforms"], Value::clone) {
        let u = uniform(hex(&case["low"]), hex(&case["high"]));
        assert!(u > 0.0 && u < 1.0);
        assert_eq!(Some((u * 2.0_f64.powi(53)) as u64), case["odd"].as_u64());
    }
}

#[test]
fn keyed_numbers_are_the_documented_ones() {
    let vectors = read("philox");
    let get = |case: &Value, name: &str| case[name].as_u64().expect("a number");
    let key = |case: &Value| Key { seed: get(case, "seed"), sample: get(case, "sample") as u32 };
    let odd = |u: f64| (u * 2.0_f64.powi(53)) as u64;
    for case in list(&vectors["coupled"], Value::clone) {
        let noise = Coupled { key: key(&case) };
        let u = noise.uniform(get(&case, "position") as usize, get(&case, "token") as u32);
        assert_eq!(odd(u), get(&case, "odd"), "{case}");
    }
    for case in list(&vectors["independent"], Value::clone) {
        let purpose = match case["purpose"].as_str() {
            Some("accept") => Purpose::Accept,
            Some("residual") => Purpose::Residual,
            Some("target") => Purpose::Target,
            Some("draft") => Purpose::Draft,
            other => panic!("{other:?}"),
        };
        let numbers = Independent { key: key(&case), committed: get(&case, "committed") as u32 };
        let (node, draw) = (get(&case, "node") as u32, get(&case, "draw") as u32);
        assert_eq!(odd(numbers.uniform(Draw { purpose, node, draw })), get(&case, "odd"), "{case}");
    }
    for case in list(&vectors["races"], Value::clone) {
        let law = toy::law::<f64>(&weights(&case["weights"]));
        let noise = Coupled { key: key(&case) };
        let found: Vec<u32> = (0..16).map(|position| noise.race(position, &law)).collect();
        assert_eq!(found, weights(&case["tokens"]), "{case}");
    }
}
