//! The whole engine at temperature 1: the joint law of three-token answers, drafts drawn by another
//! model, against the product of the target's own laws. The one test that covers kernels, drafter,
//! verifier, history and scheduler together where nothing is deterministic.

mod runs;

use runs::{drafting, open};
use specdec_core::rng::Key;
use specdec_core::row_ops::Scalar;
use specdec_core::{Budget, History, Law, Method, Processors, Sampling, Scratch};
use specdec_engine::cache::SeqCache;
use specdec_engine::draft::{ModelDrafter, ModelDrafterSizes};
use specdec_engine::model::{decoder::Decoder, rows::Row};
use specdec_engine::request::SamplingParams;
use specdec_engine::sequence::{Sequence, Spec};
use specdec_testkit::chi_square::chi_square;
use specdec_testkit::gguf::TinyModel;
use specdec_testkit::toy::texts;
use std::time::Instant;

/// The only tokens, so that every answer is one of 64 bins.
const ALLOWED: [u32; 4] = [40, 90, 140, 190];
const PROMPT: [u32; 3] = [40, 7, 140];
const LENGTH: usize = 3;
/// Requests that share a step.
const BATCH: usize = 16;
/// Level of every test; seeds are fixed, so it either always or never passes.
const LEVEL: f64 = 1e-9;

fn models() -> (TinyModel, TinyModel) {
    let target = TinyModel { layers: 2, ..TinyModel::llama() };
    let draft = TinyModel { layers: 1, ..target.clone() };
    (target, draft)
}

/// Penalties make the law depend on every token before, the drafted ones included.
fn sampling() -> Sampling {
    Sampling {
        allowed_token_ids: Some(ALLOWED.to_vec()),
        presence_penalty: 0.7,
        repetition_penalty: 1.2,
        ..Sampling::default()
    }
}

/// The law of the token after `output`, from a fresh cache and a fresh history.
fn law_after(decoder: &mut Decoder, processors: &Processors, output: &[u32]) -> Law {
    let text = [PROMPT.as_slice(), output].concat();
    let row = |(i, &token): (usize, &u32)| Row {
        token,
        seq: 0,
        parent: i.checked_sub(1),
        logits: i + 1 == text.len(),
        hidden: false,
    };
    let rows: Vec<Row> = text.iter().enumerate().map(row).collect();
    let mut cache = SeqCache::default();
    decoder.forward(&mut [&mut cache], &rows).unwrap();
    let mut history = History::new(&PROMPT);
    for &token in output {
        history.push(token);
    }
    let mut law = Law::one_hot(0);
    let (ops, scratch) = (&mut Scalar::default(), &mut Scratch::default());
    let logits = decoder.logits(rows.len() - 1).unwrap();
    processors.law(logits, history.then(&[]), ops, scratch, &mut law).unwrap();
    decoder.release(&mut cache);
    law
}

/// Probability of every answer, and all answers in the same order.
fn expected(processors: &Processors) -> (Vec<Vec<u32>>, Vec<f64>) {
    let (mut decoder, _) = open(&models().0.temp_file(), |_| ());
    let name = |text: Vec<u32>| -> Vec<u32> { text.iter().map(|&i| ALLOWED[i as usize]).collect() };
    let answers: Vec<Vec<u32>> = texts(ALLOWED.len(), LENGTH).into_iter().map(name).collect();
    let mut probability = |answer: &Vec<u32>| {
        let law = |i| law_after(&mut decoder, processors, &answer[..i]).prob(answer[i]);
        (0..LENGTH).map(law).product::<f64>()
    };
    let law = answers.iter().map(&mut probability).collect();
    (answers, law)
}

/// Draws `answers` answers with drafts of up to `branching` children and compares.
fn compare(method: Method, branching: usize, answers: usize) {
    let (target, draft) = models();
    let options = |options: &mut specdec_engine::EngineOptions| {
        options.max_num_seqs = BATCH;
        options.max_model_len = Some(64);
        options.prefill_rows = 16 * BATCH;
        options.speculation =
            Some(specdec_engine::Speculation { num_speculative_tokens: 6, ..Default::default() });
    };
    let (decoder, tokenizer) = open(&target.temp_file(), options);
    let (small, _) = open(&draft.temp_file(), options);
    let sizes = ModelDrafterSizes {
        context: draft.context,
        vocab: draft.vocab,
        target_vocab: target.vocab,
        nodes: 6,
        branching,
        draws: true,
    };
    let mut runner = drafting(decoder, &tokenizer, Some(Box::new(ModelDrafter::new(small, sizes))));
    let processors = Processors::new(&sampling(), target.vocab).unwrap();
    let (names, law) = expected(&processors);
    let params = SamplingParams {
        sampling: sampling(),
        max_tokens: LENGTH,
        ignore_eos: true,
        ..SamplingParams::default()
    };
    let sequence = |id: u64| {
        let spec = Spec {
            id,
            params: params.clone(),
            processors: processors.clone(),
            key: Key { seed: id, sample: 3 },
            method,
            budget: Some(Budget { nodes: 6, depth: 3 }),
            context: 64,
            arrival: Instant::now(),
        };
        Sequence::new(PROMPT.to_vec(), spec, &tokenizer)
    };
    let mut counts = vec![0; names.len()];
    let (mut accepted, mut drafted) = (0, 0);
    for first in (0..answers as u64).step_by(BATCH) {
        let mut texts = vec![Vec::<u32>::new(); BATCH];
        for id in first..first + BATCH as u64 {
            runner.scheduler.add(sequence(id));
        }
        while !runner.scheduler.is_idle() {
            for update in runner.scheduler.step().unwrap() {
                texts[(update.id - first) as usize].extend(&update.chunk.token_ids);
                if let Some(end) = update.end {
                    let stats = end.unwrap().metrics.speculation;
                    accepted += stats.num_accepted_draft_tokens;
                    drafted += stats.num_draft_tokens;
                }
            }
        }
        for text in texts {
            counts[names.iter().position(|name| *name == text).expect("an allowed answer")] += 1;
        }
    }
    let test = chi_square(&counts, &law);
    println!(
        "{method:?}, branching {branching}: {answers} answers, {accepted} of {drafted} drafts \
         accepted, p = {:.3}, total variation {:.5}",
        test.p_value, test.total_variation
    );
    assert!(test.p_value > LEVEL, "{test:?}");
    assert!(accepted > 0 && accepted < drafted, "{accepted} of {drafted} drafts accepted");
    // The expected total variation of n answers over 64 bins is under sqrt(64 / n) / 2.
    assert!(test.total_variation < (64.0 / answers as f64).sqrt(), "{test:?}");
}

#[test]
fn standard_on_chains() {
    compare(Method::Standard, 1, 25_008);
}

#[test]
fn standard_on_trees() {
    compare(Method::Standard, 3, 25_008);
}

#[test]
fn block_on_chains() {
    compare(Method::Traversal, 1, 25_008);
}

#[test]
fn traversal_on_trees() {
    compare(Method::Traversal, 3, 25_008);
}

#[test]
#[ignore = "ten million answers, a quarter of an hour: run by make test-exact"]
fn ten_million_answers() {
    for (method, branching) in [(Method::Standard, 3), (Method::Traversal, 1)] {
        compare(method, branching, 5_000_000);
    }
}
