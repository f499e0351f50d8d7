//! From a row of logits to the law: against definitions written out the slow way, and on bad rows.

use proptest::prelude::*;
use specdec_core::row_ops::{RowOps, Scalar};
use specdec_core::{
    History, Law, LawError, Processors, Sampling, Scratch, TokenId, logprobs, math,
};

fn try_law(row: &[f32], sampling: &Sampling, out: &mut Law) -> Result<(), LawError> {
    let processors = Processors::new(sampling, row.len()).expect("in range");
    let (history, ops) = (History::default(), &mut Scalar::default());
    processors.law(row, history.then(&[]), ops, &mut Scratch::default(), out)
}

fn law_of(row: &[f32], sampling: &Sampling) -> Law {
    let mut out = Law::one_hot(9);
    try_law(row, sampling, &mut out).expect("a law");
    out
}

fn cuts(temperature: f64, top_k: u32, top_p: f64, min_p: f64) -> Sampling {
    Sampling { temperature, top_k, top_p, min_p, ..Sampling::default() }
}

/// The chain on pairs (token, weight), as sentences: sort, keep, keep, keep.
fn slowly(row: &[f32], temperature: f64, top_k: usize, top_p: f64, min_p: f64) -> Vec<f64> {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let scale = (1.0 / temperature) as f32;
    let weight = |x: f32| f64::from(math::exp((x - max) * scale));
    let mut sorted: Vec<(usize, f64)> =
        row.iter().map(|&x| weight(x)).enumerate().filter(|&(_, w)| w >= min_p).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    if top_k > 0 && top_k <= sorted.len() {
        let least = sorted[top_k - 1].1;
        sorted.retain(|&(_, w)| w >= least);
    }
    let total: f64 = sorted.iter().map(|&(_, w)| w).sum();
    let mut mass = 0.0;
    let enough = |&&(_, w): &&(usize, f64)| {
        mass += w;
        mass - w < top_p * total - 1e-12 * total
    };
    let kept: Vec<_> = sorted.iter().take_while(enough).copied().collect();
    let total: f64 = kept.iter().map(|&(_, w)| w).sum();
    let mut law = vec![0.0; row.len()];
    for (token, w) in kept {
        law[token] = w / total;
    }
    law
}

proptest! {
    /// Logits from a coarse grid, so that ties are frequent.
    #[test]
    fn the_chain_is_what_it_says(
        logits in prop::collection::vec((-40..40_i32).prop_map(|x| x as f32 / 4.0), 1..60),
        temperature in 0.2..3.0_f64,
        top_k in 0..12_u32,
        top_p in 0.05..0.95_f64,
        min_p in prop::sample::select(vec![0.0, 0.01, 0.3, 0.9, 1.0]),
    ) {
        let found = law_of(&logits, &cuts(temperature, top_k, top_p, min_p));
        let expected = slowly(&logits, temperature, top_k as usize, top_p, min_p);
        for (token, p) in expected.iter().enumerate() {
            let found = found.prob(token as TokenId);
            prop_assert!((found - p).abs() < 1e-12, "token {}: {} for {}", token, found, p);
        }
    }

    #[test]
    fn the_k_th_largest_is_the_k_th_of_the_sorted(
        row in prop::collection::vec(-5.0..5.0_f32, 1..300),
        k in 1..300_usize,
    ) {
        let k = 1 + (k - 1) % row.len();
        let mut sorted = row.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        prop_assert_eq!(Scalar::default().kth_largest(&row, k).to_bits(), sorted[k - 1].to_bits());
    }
}

#[test]
fn a_law_is_the_same_whatever_was_in_its_buffers() {
    let row: Vec<f32> = (0..500).map(|i| ((i * 37) % 101) as f32 / 9.0).collect();
    let all =
        [Sampling::default(), cuts(0.7, 0, 0.9, 0.0), Sampling::greedy(), cuts(1.3, 20, 1.0, 0.05)];
    let mut reused = Law::one_hot(0);
    for first in &all {
        for second in &all {
            try_law(&row, first, &mut reused).expect("a law");
            try_law(&row, second, &mut reused).expect("a law");
            assert_eq!(reused, law_of(&row, second));
        }
    }
}

#[test]
fn bad_rows_are_named() {
    let fail =
        |row: &[f32]| try_law(row, &Sampling::default(), &mut Law::one_hot(0)).expect_err("no law");
    let message = fail(&[0.0, f32::INFINITY]).to_string();
    assert_eq!(
        message,
        "logit of token 1 is inf, expected a finite number or -inf; \
         the model's weights or its input are damaged"
    );
    assert!(fail(&[f32::NAN; 4]).to_string().starts_with("logit of token 0 is NaN"));
    assert_eq!(fail(&[f32::NEG_INFINITY; 2]), LawError::NoToken { len: 2 });
    assert_eq!(fail(&[]), LawError::NoToken { len: 0 });
}

#[test]
fn extreme_rows_are_laws() {
    let spread = law_of(&[f32::MAX, f32::MIN, f32::NEG_INFINITY, 0.0], &Sampling::default());
    assert_eq!(spread.only_token(), Some(0));
    let cold = cuts(2e-5, 0, 1.0, 0.0);
    assert_eq!(law_of(&[1.0, 1.1, 1.0], &cold).only_token(), Some(1));
    let hot = cuts(1e30, 0, 1.0, 0.0);
    assert!((law_of(&[1.0, 1.1], &hot).prob(0) - 0.5).abs() < 1e-9);
    let flat = cuts(1.0, 0, 0.5, 0.0);
    assert_eq!(law_of(&[0.0; 1000], &flat).len(), 500);
    assert_eq!(law_of(&[3.0], &flat).only_token(), Some(0));
    let single = cuts(1.0, 1, 1.0, 0.0);
    assert_eq!(law_of(&[f32::NEG_INFINITY, 1.0], &single).only_token(), Some(1));
}

#[test]
fn greedy_takes_the_lowest_id_on_ties() {
    let row = [1.0, 3.0, 2.0, 3.0];
    assert_eq!(law_of(&row, &Sampling::greedy()), Law::one_hot(1));
    let tiny = cuts(1e-6, 5, 0.5, 0.1);
    assert_eq!(law_of(&row, &tiny), Law::one_hot(1));
}

#[test]
fn parameters_out_of_range_are_named() {
    let message = |sampling: Sampling| match Processors::new(&sampling, 8) {
        Ok(processors) => panic!("{processors:?}"),
        Err(error) => error.to_string(),
    };
    let cut = |temperature, top_p, min_p| message(cuts(temperature, 0, top_p, min_p));
    assert_eq!(cut(-1.0, 1.0, 0.0), "temperature is -1, expected a finite number >= 0");
    assert!(cut(f64::NAN, 1.0, 0.0).starts_with("temperature is NaN"));
    assert!(cut(f64::INFINITY, 1.0, 0.0).starts_with("temperature is inf"));
    assert_eq!(cut(1.0, 0.0, 0.0), "top_p is 0, expected a number in (0, 1]");
    assert!(cut(1.0, 1.1, 0.0).starts_with("top_p is 1.1"));
    assert!(cut(1.0, f64::NAN, 0.0).starts_with("top_p is NaN"));
    assert!(cut(1.0, 1.0, -0.1).starts_with("min_p is -0.1"));
    let model = Sampling::default;
    for penalty in [0.0, -1.0, f64::NAN, 1e-60, 1e60] {
        let text = message(Sampling { repetition_penalty: penalty, ..model() });
        assert_eq!(
            text,
            format!("repetition_penalty is {penalty}, expected a finite number above 0")
        );
    }
    assert_eq!(
        message(Sampling { frequency_penalty: 2.5, ..model() }),
        "frequency_penalty is 2.5, expected a number in [-2, 2]"
    );
    assert!(
        message(Sampling { presence_penalty: f64::NAN, ..model() })
            .starts_with("presence_penalty is NaN")
    );
    assert_eq!(
        message(Sampling { logit_bias: [(1, 0.5), (8, 0.0)].into(), ..model() }),
        "logit_bias is token 8, expected token ids below 8, the size of the vocabulary"
    );
    assert!(
        message(Sampling { logit_bias: [(1, 1e39)].into(), ..model() }).ends_with("numbers (f32)")
    );
    assert_eq!(
        message(Sampling { allowed_token_ids: Some(Vec::new()), ..model() }),
        "allowed_token_ids is empty, expected at least one token id"
    );
    assert!(
        message(Sampling { allowed_token_ids: Some(vec![9]), ..model() })
            .starts_with("allowed_token_ids is token 9")
    );
    assert!(
        message(Sampling { bad_words: vec![vec![3], vec![]], ..model() })
            .starts_with("bad_words is a word without tokens")
    );
    assert!(message(Sampling { bad_words: vec![vec![8]], ..model() }).contains("token 8"));
    assert!(message(Sampling { end_token_ids: vec![8], ..model() }).contains("stop_token_ids"));
}

#[test]
fn logprobs_are_the_raw_log_softmax() {
    let row = [1.0_f32, 3.0, 2.0, 3.0, f32::NEG_INFINITY];
    let total: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
    let expected = |x: f64| (x - total.ln()) as f32;
    let get = |token, n| logprobs(&row, token, n, &mut Scalar::default());
    let found = get(2, 3).expect("a law");
    assert_eq!((found.token, found.rank), (2, 3));
    let close = |a: f32, b: f32| (a - b).abs() < 1e-6;
    assert!(close(found.logprob, expected(2.0)), "{found:?}");
    assert_eq!(found.top.iter().map(|top| top.0).collect::<Vec<_>>(), [1, 3, 2]);
    assert!(close(found.top[0].1, expected(3.0)) && close(found.top[2].1, expected(2.0)));
    assert_eq!(get(3, 0).map(|found| (found.rank, found.top.len())), Ok((2, 0)));
    assert_eq!(get(4, 9).map(|found| (found.logprob, found.rank)), Ok((f32::NEG_INFINITY, 5)));
    assert_eq!(get(5, 1), Err(LawError::Token { token: 5, len: 5 }));
}

#[test]
fn exp_and_ln_are_accurate() {
    for i in 0..2_000_000 {
        let x = -(i as f32) * 4.4e-5;
        let (found, exact) = (f64::from(math::exp(x)), f64::from(x).exp());
        let ulp = 2.0_f64.powi(exact.log2().floor() as i32 - 23);
        assert!(x < -87.3 || (found - exact).abs() <= 1.5 * ulp, "exp {x}: {found}, {exact}");
        let u = (f64::from(i) + 0.5) / 2e6;
        let error = (math::ln(u) - u.ln()).abs();
        assert!(error <= 3e-16 * u.ln().abs().max(0.5), "ln {u}: off by {error}");
    }
    assert_eq!(math::exp(0.0).to_bits(), 1.0_f32.to_bits());
    for gone in [-87.4, -1e6, f32::MIN, f32::NEG_INFINITY] {
        assert_eq!(math::exp(gone).to_bits(), 0);
    }
    let smallest = 0.5_f64.powi(53);
    assert!((math::ln(smallest) + 53.0 * std::f64::consts::LN_2).abs() < 1e-14);
    // Near 1 the logarithm is small, and its error must be small beside it.
    let largest = 1.0 - smallest;
    assert!((math::ln(largest) + smallest).abs() < 1e-31);
}

#[test]
fn sums_are_cut_at_fixed_lanes() {
    let values: Vec<f64> = (0..37).map(|i| 1.0 / f64::from(i + 1)).collect();
    let mut lanes = [0.0; 16];
    values.iter().enumerate().for_each(|(i, value)| lanes[i % 16] += value);
    let four = |i: usize| (lanes[i] + lanes[i + 8]) + (lanes[i + 4] + lanes[i + 12]);
    let expected = (four(0) + four(2)) + (four(1) + four(3));
    assert_eq!(math::sum(&values).to_bits(), expected.to_bits());
    assert_eq!(math::sum(&[]).to_bits(), 0);
}
