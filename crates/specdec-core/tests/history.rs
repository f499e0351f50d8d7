//! Processors with a memory: against definitions written out the slow way, and what drafted tokens
//! leave behind (nothing).

use std::collections::BTreeMap;

use proptest::prelude::*;
use specdec_core::row_ops::Scalar;
use specdec_core::{History, Law, LawError, Processors, Sampling, Scratch, TokenId};

const VOCAB: usize = 12;

/// Everything that was said before a token, in three parts.
#[derive(Debug, Clone)]
struct Said {
    prompt: Vec<TokenId>,
    output: Vec<TokenId>,
    path: Vec<TokenId>,
}

impl Said {
    fn history(&self) -> History {
        let mut history = History::new(&self.prompt);
        self.output.iter().for_each(|&token| history.push(token));
        history
    }

    /// Prompt apart, the tokens in order.
    fn answer(&self) -> Vec<TokenId> {
        [self.output.as_slice(), &self.path].concat()
    }
}

fn law_of(row: &[f32], sampling: &Sampling, said: &Said) -> Result<Law, LawError> {
    let processors = Processors::new(sampling, VOCAB).expect("in range");
    let history = said.history();
    let mut law = Law::one_hot(0);
    let (ops, scratch) = (&mut Scalar::default(), &mut Scratch::default());
    processors.law(row, history.then(&said.path), ops, scratch, &mut law).map(|()| law)
}

/// The row after all processors that have a memory, as sentences.
fn slowly(row: &[f32], sampling: &Sampling, said: &Said) -> Vec<f32> {
    let answer = said.answer();
    let mut row = row.to_vec();
    for token in 0..VOCAB as TokenId {
        let x = &mut row[token as usize];
        let allowed = sampling.allowed_token_ids.as_ref();
        let completes = |word: &Vec<TokenId>| {
            word.last() == Some(&token) && answer.ends_with(&word[..word.len() - 1])
        };
        let early = answer.len() < sampling.min_tokens;
        if allowed.is_some_and(|ids| !ids.contains(&token))
            || sampling.bad_words.iter().any(completes)
            || (early && sampling.end_token_ids.contains(&token))
        {
            *x = f32::NEG_INFINITY;
        }
        *x += sampling.logit_bias.get(&token).map_or(0.0, |&bias| bias as f32);
        let count = answer.iter().filter(|&&other| other == token).count();
        if count > 0 || said.prompt.contains(&token) {
            let factor = sampling.repetition_penalty as f32;
            *x = if *x > 0.0 { *x / factor } else { *x * factor };
        }
        if count > 0 {
            *x -= sampling.frequency_penalty as f32 * count as f32;
            *x -= sampling.presence_penalty as f32;
        }
    }
    row
}

fn tokens(most: usize) -> impl Strategy<Value = Vec<TokenId>> {
    prop::collection::vec(0..VOCAB as TokenId, 0..most)
}

fn said() -> impl Strategy<Value = Said> {
    (tokens(6), tokens(6), tokens(4)).prop_map(|(prompt, output, path)| Said {
        prompt,
        output,
        path,
    })
}

prop_compose! {
    fn sampling()(
        repetition_penalty in prop::sample::select(vec![1.0, 1.3, 0.5]),
        frequency_penalty in prop::sample::select(vec![0.0, 0.7, -0.4]),
        presence_penalty in prop::sample::select(vec![0.0, 1.5]),
        bias in prop::collection::btree_map(0..VOCAB as TokenId, -3.0..3.0_f64, 0..3),
        allowed in prop::option::of(prop::collection::vec(0..VOCAB as TokenId, 1..9)),
        bad_words in prop::collection::vec(prop::collection::vec(0..VOCAB as TokenId, 1..4), 0..4),
        min_tokens in 0..8_usize,
        end_token_ids in tokens(3),
    ) -> Sampling {
        Sampling {
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
            logit_bias: bias,
            allowed_token_ids: allowed,
            bad_words,
            min_tokens,
            end_token_ids,
            ..Sampling::default()
        }
    }
}

proptest! {
    /// One step of the chain after the other, token by token, gives the same law bit for bit.
    #[test]
    fn the_memory_is_what_it_says(
        row in prop::collection::vec((-20..20_i32).prop_map(|x| x as f32 / 4.0), VOCAB),
        sampling in sampling(),
        said in said(),
    ) {
        let edited = slowly(&row, &sampling, &said);
        let plain = law_of(&edited, &Sampling::default(), &said);
        match (law_of(&row, &sampling, &said), plain) {
            (Ok(found), Ok(plain)) => for token in 0..VOCAB as TokenId {
                prop_assert_eq!(found.weight(token).to_bits(), plain.weight(token).to_bits());
            },
            (Err(LawError::NoToken { .. }), Err(LawError::NoToken { .. })) => {}
            (found, plain) => prop_assert!(false, "{:?} for {:?}", found, plain),
        }
    }

    /// A drafted token counts as a committed one does, and is forgotten with its path.
    #[test]
    fn a_path_is_committed_text_until_it_is_dropped(
        row in prop::collection::vec(-5.0..5.0_f32, VOCAB),
        sampling in sampling(),
        said in said(),
    ) {
        let committed = Said { output: said.answer(), path: Vec::new(), ..said.clone() };
        prop_assert_eq!(law_of(&row, &sampling, &said), law_of(&row, &sampling, &committed));
        let history = said.history();
        let processors = Processors::new(&sampling, VOCAB).expect("in range");
        let mut scratch = Scratch::default();
        let mut law = |path: &[TokenId]| {
            let mut law = Law::one_hot(0);
            let ops = &mut Scalar::default();
            processors.law(&row, history.then(path), ops, &mut scratch, &mut law).map(|()| law)
        };
        let before = law(&[]);
        law(&said.path).ok();
        prop_assert_eq!(law(&[]), before);
        prop_assert_eq!(&history, &said.history());
    }
}

fn nothing_said() -> Said {
    Said { prompt: Vec::new(), output: Vec::new(), path: Vec::new() }
}

#[test]
fn the_order_is_bias_then_repetition_then_counts() {
    let mut row = [f32::NEG_INFINITY; VOCAB];
    (row[0], row[1]) = (1.0, 0.0);
    let sampling = Sampling {
        logit_bias: BTreeMap::from([(0, 3.0)]),
        repetition_penalty: 2.0,
        frequency_penalty: 0.5,
        presence_penalty: 0.25,
        ..Sampling::default()
    };
    let said = Said { prompt: vec![0], output: vec![0], path: vec![0] };
    // ((1 + 3) / 2 - 2 * 0.5) - 0.25
    let law = law_of(&row, &sampling, &said).expect("a law");
    let expected = (0.75_f64).exp() / ((0.75_f64).exp() + 1.0);
    assert!((law.prob(0) - expected).abs() < 1e-7, "{law:?}");
}

#[test]
fn greedy_sees_every_processor() {
    let row: Vec<f32> = (0..VOCAB).map(|i| i as f32).collect();
    let best = |sampling: Sampling, said: &Said| {
        law_of(&row, &Sampling { temperature: 0.0, ..sampling }, said).expect("a law").only_token()
    };
    let model = Sampling::default;
    let said = Said { prompt: vec![10], output: vec![11], path: vec![11] };
    assert_eq!(best(model(), &said), Some(11));
    assert_eq!(best(Sampling { repetition_penalty: 2.0, ..model() }, &said), Some(9));
    assert_eq!(best(Sampling { presence_penalty: 1.5, ..model() }, &said), Some(10));
    assert_eq!(best(Sampling { frequency_penalty: 0.4, ..model() }, &said), Some(11));
    assert_eq!(best(Sampling { frequency_penalty: 0.6, ..model() }, &said), Some(10));
    let ends = |min_tokens| Sampling { min_tokens, end_token_ids: vec![11], ..model() };
    assert_eq!((best(ends(2), &said), best(ends(3), &said)), (Some(11), Some(10)));
    let bias = BTreeMap::from([(3, 100.0)]);
    assert_eq!(best(Sampling { logit_bias: bias, ..model() }, &said), Some(3));
    let allowed = Some(vec![4, 2, 4]);
    assert_eq!(best(Sampling { allowed_token_ids: allowed, ..model() }, &said), Some(4));
    let word = vec![vec![11, 11, 11], vec![3, 10]];
    assert_eq!(best(Sampling { bad_words: word, ..model() }, &said), Some(10));
}

#[test]
fn what_is_beyond_the_vocabulary_does_not_exist() {
    let mut row = vec![0.0; VOCAB + 4];
    row[VOCAB] = 50.0;
    row[VOCAB + 1] = f32::NAN;
    let law = law_of(&row, &Sampling::default(), &nothing_said()).expect("a law");
    assert_eq!(law.len(), VOCAB);
    let error = law_of(&row[..4], &Sampling::default(), &nothing_said()).expect_err("too short");
    assert_eq!(error, LawError::Row { len: 4, vocab: VOCAB });
}

#[test]
fn a_damaged_logit_is_named_by_its_token_among_allowed_ones_too() {
    let mut row = vec![0.0; VOCAB];
    row[7] = f32::NAN;
    let only = |ids| Sampling { allowed_token_ids: Some(ids), ..Sampling::default() };
    let error = law_of(&row, &only(vec![2, 7]), &nothing_said()).expect_err("damaged");
    assert!(matches!(error, LawError::Logit { token: 7, .. }), "{error}");
}

#[test]
fn large_numbers_saturate_and_are_no_damage() {
    let row = [f32::MAX / 2.0; VOCAB];
    let bias = BTreeMap::from([(0, f64::from(f32::MAX)), (1, f64::from(f32::MIN))]);
    let huge = Sampling { logit_bias: bias, repetition_penalty: 1e-30, ..Sampling::default() };
    let said = Said { prompt: vec![2], output: vec![0], path: vec![3] };
    let law = law_of(&row, &huge, &said).expect("a law");
    assert!(law.prob(1) < 1e-9 && law.prob(0) > 0.0, "{law:?}");
}
