//! The primitives on rows: the committed outcomes of `tests/vectors/verify_keyed.json`, sparse
//! tables, and what is refused.

use serde_json::Value;
use specdec_core::primitives::{Drafted, PrimitiveError, Rows, Table, sample, verify};
use specdec_core::rng::Key;
use specdec_core::{Method, TokenId, TreeError};

/// Rows of f64.
struct Plain {
    rows: Vec<Vec<f64>>,
    width: usize,
}

impl Plain {
    fn new(rows: Vec<Vec<f64>>) -> Self {
        let width = rows.first().map_or(0, Vec::len);
        Self { rows, width }
    }
}

impl Rows for Plain {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn width(&self) -> usize {
        self.width
    }

    fn rounding(&self) -> f64 {
        1e-3
    }

    fn read(&self, row: usize, out: &mut Vec<f64>) {
        out.clone_from(&self.rows[row]);
    }
}

fn numbers(value: &Value) -> Vec<i64> {
    let values = value.as_array().expect("an array").iter();
    values.map(|x| x.as_i64().expect("a whole number")).collect()
}

fn law(weights: &Value) -> Vec<f64> {
    let weights = numbers(weights);
    let sum: i64 = weights.iter().sum();
    weights.iter().map(|&x| x as f64 / sum as f64).collect()
}

/// Target and draft rows of a case; a rule's token has a one-hot row.
fn rows(case: &Value) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let p: Vec<_> = case["p"].as_array().expect("rows").iter().map(law).collect();
    let one_hot = |token: i64| (0..p[0].len()).map(|x| f64::from(x as i64 == token)).collect();
    let drafts = case["q"].as_array().expect("rows").iter().zip(numbers(&case["tokens"]));
    let q = drafts.map(|(q, token)| if q.is_null() { one_hot(token) } else { law(q) }).collect();
    (p, q)
}

fn method(case: &Value) -> Method {
    match case["method"].as_str().expect("a name") {
        "greedy" => Method::Greedy,
        "standard" => Method::Standard,
        "block" | "traversal" => Method::Traversal,
        "coupled" => Method::Coupled,
        other => panic!("method {other}"),
    }
}

#[test]
fn committed_outcomes_from_dense_and_from_sparse_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/verify_keyed.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for case in file["cases"].as_array().expect("cases") {
        let (p, q) = rows(case);
        let (tokens, parents) = (numbers(&case["tokens"]), numbers(&case["parents"]));
        let vocab = p[0].len();
        // Columns that no row uses are left out.
        let used: Vec<TokenId> = (0..vocab as u32)
            .filter(|&x| p.iter().chain(&q).any(|r| r[x as usize] > 0.0))
            .collect();
        let few = |rows: &[Vec<f64>]| -> Plain {
            let pick = |row: &Vec<f64>| used.iter().map(|&x| row[x as usize]).collect();
            Plain { rows: rows.iter().map(pick).collect(), width: used.len() }
        };
        let (few_p, few_q) = (few(&p), few(&q));
        let q = Plain { width: vocab, rows: q };
        let p = Plain::new(p);
        let tables = [
            (Table::dense("p", &p), Table::dense("q", &q)),
            (
                Table::sparse("p", &few_p, &used, vocab).unwrap(),
                Table::sparse("q", &few_q, &used, vocab).unwrap(),
            ),
        ];
        for found in case["outcomes"].as_array().expect("outcomes") {
            let key = Key { seed: found["seed"].as_u64().unwrap(), sample: 0 };
            let position = found["position"].as_u64().unwrap() as usize;
            let path = numbers(&found["path"]);
            let mut expected: Vec<i64> = path.iter().map(|&node| tokens[node as usize]).collect();
            expected.push(found["next"].as_i64().unwrap());
            for (target, draft) in &tables {
                let drafted = Drafted { token_ids: &tokens, parents: &parents };
                let it = verify(target, draft, drafted, method(case), position, key).unwrap();
                assert_eq!(it.num_accepted, path.len(), "{}", case["id"]);
                let ids: Vec<i64> = it.token_ids.iter().map(|&x| i64::from(x)).collect();
                assert_eq!(ids, expected, "{}", case["id"]);
            }
        }
    }
}

fn refusal(
    p: &[&[f64]],
    q: &[&[f64]],
    token_ids: &[i64],
    parents: &[i64],
) -> Option<PrimitiveError> {
    let plain = |rows: &[&[f64]]| Plain::new(rows.iter().map(|row| row.to_vec()).collect());
    let (p, q) = (plain(p), plain(q));
    let drafted = Drafted { token_ids, parents };
    let key = Key { seed: 1, sample: 0 };
    let tables = (Table::dense("p", &p), Table::dense("q", &q));
    verify(&tables.0, &tables.1, drafted, Method::Standard, 0, key).err()
}

#[test]
fn what_does_not_fit_is_named() {
    let half: &[f64] = &[0.5, 0.5];
    assert_eq!(refusal(&[half, half], &[half], &[1], &[-1]), None);
    assert_eq!(refusal(&[half], &[], &[], &[]), None);
    let rows = refusal(&[half], &[half], &[1], &[-1]);
    assert_eq!(rows, Some(PrimitiveError::Rows { name: "p", found: 1, expected: 2 }));
    let width = refusal(&[half, half], &[&[1.0, 0.0, 0.0]], &[0], &[-1]);
    assert_eq!(width, Some(PrimitiveError::Width { name: "q", found: 3, expected: 2 }));
    let negative = refusal(&[half, &[1.5, -0.5]], &[half], &[0], &[-1]);
    let value = -0.5;
    let at = PrimitiveError::Probability { name: "p", row: 1, token: 1, value };
    assert_eq!(negative, Some(at));
    let nan = refusal(&[half, half], &[&[f64::NAN, 1.0]], &[0], &[-1]);
    assert!(matches!(nan, Some(PrimitiveError::Probability { name: "q", row: 0, token: 0, .. })));
    let sum = refusal(&[half, &[0.5, 0.4]], &[half], &[0], &[-1]);
    assert!(matches!(sum, Some(PrimitiveError::Sum { name: "p", row: 1, .. })));
    let token = refusal(&[half, half], &[half], &[2], &[-1]);
    assert_eq!(token, Some(PrimitiveError::Token { node: 0, token: 2, vocab: 2 }));
    let parents = refusal(&[half, half], &[half], &[0], &[]);
    assert_eq!(parents, Some(PrimitiveError::Parents { nodes: 1, found: 0 }));
    for parent in [0, -2, i64::MAX] {
        let refused = refusal(&[half, half], &[half], &[0], &[parent]);
        assert_eq!(refused, Some(PrimitiveError::Parent { node: 0, parent }));
    }
    let twice = refusal(&[half, half, half], &[half, half], &[1, 1], &[-1, -1]);
    let source = TreeError::Duplicate { token: 1, node: 0 };
    assert_eq!(twice, Some(PrimitiveError::Tree { node: 1, source }));
    let impossible = refusal(&[half, half], &[&[1.0, 0.0]], &[1], &[-1]);
    assert!(matches!(impossible, Some(PrimitiveError::Tree { node: 0, .. })));
}

#[test]
fn positions_and_columns_have_bounds() {
    let rows = Plain::new(vec![vec![0.5, 0.5]]);
    let key = Key { seed: 1, sample: 0 };
    let far = sample(&Table::dense("p", &rows), 1 << 32, key);
    assert_eq!(far, Err(PrimitiveError::Position { found: 1 << 32 }));
    for (ids, vocab) in [(&[1, 0][..], 2), (&[1, 1], 2), (&[0, 2], 2), (&[0], 2), (&[0, 1, 2], 3)] {
        assert!(Table::sparse("p", &rows, ids, vocab).is_err(), "{ids:?}");
    }
    let far_apart = Table::sparse("p", &rows, &[3, 70_000], 80_000).unwrap();
    assert!([3, 70_000].contains(&sample(&far_apart, 5, key).unwrap()));
}
