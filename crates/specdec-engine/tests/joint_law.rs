//! The whole engine at temperature 1: the joint law of three-token answers, drafts drawn by another
//! model, against the product of the target's own laws. The one test that covers kernels, drafter,
//! verifier, history and scheduler together where nothing is deterministic.

mod runs;

use runs::open;
use runs::sampled::{LEVEL, Request, compare};
use specdec_core::{Budget, Method, Sampling, SpecStats};
use specdec_engine::draft::{ModelDrafter, ModelDrafterSizes};
use specdec_engine::request::SamplingParams;
use specdec_engine::scheduler::Scheduler;
use specdec_engine::{EngineOptions, Speculation};
use specdec_testkit::gguf::TinyModel;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Requests that share a step.
const BATCH: usize = 16;

/// The target, and a draft with half of its layers.
fn models() -> (TinyModel, TinyModel) {
    let target = TinyModel { layers: 2, ..TinyModel::llama() };
    let draft = TinyModel { layers: 1, ..target.clone() };
    (target, draft)
}

/// Four tokens, so that every answer is one of 64 bins; penalties make the law depend on every
/// token before, the drafted ones included. A prompt of one token is no prefill, so that the first
/// step drafts already, and trees are two levels deep.
fn request(method: Method) -> Request {
    let sampling = Sampling {
        allowed_token_ids: Some(vec![40, 90, 140, 190]),
        presence_penalty: 0.7,
        repetition_penalty: 1.2,
        ..Sampling::default()
    };
    let params =
        SamplingParams { sampling, max_tokens: 3, ignore_eos: true, ..SamplingParams::default() };
    Request { prompt: vec![40], params, method, budget: Budget { nodes: 6, depth: 3 } }
}

fn options(options: &mut EngineOptions) {
    options.max_num_seqs = BATCH;
    options.max_model_len = Some(64);
    options.prefill_rows = 16 * BATCH;
    options.speculation = Some(Speculation { num_speculative_tokens: 6, ..Default::default() });
}

/// Some of the answers, with drafts of up to `branching` children of a node.
fn answers(
    method: Method,
    branching: usize,
    ids: Range<u64>,
) -> (BTreeMap<Vec<u32>, u64>, SpecStats) {
    let (target, draft) = models();
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
    let drafter = Box::new(ModelDrafter::new(small, sizes));
    let mut scheduler = Scheduler::new(decoder, Some(drafter), Arc::clone(&tokenizer), BATCH);
    request(method).answers(&mut scheduler, &tokenizer, ids)
}

/// Draws `number` answers, on all cores, and holds their law against the target's.
fn check(method: Method, branching: usize, number: u64) {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let part = move |thread| number * thread / threads..number * (thread + 1) / threads;
    let work: Vec<_> = (0..threads)
        .map(|thread| std::thread::spawn(move || answers(method, branching, part(thread))))
        .collect();
    let (mut counts, mut stats) = (BTreeMap::new(), SpecStats::default());
    for thread in work {
        let (more, theirs) = thread.join().unwrap();
        stats.merge(&theirs);
        for (text, count) in more {
            *counts.entry(text).or_default() += count;
        }
    }
    let joint = request(method).joint(&mut open(&models().0.temp_file(), options).0);
    assert_eq!(joint.len(), 64);
    let test = compare(counts, &joint);
    let (accepted, drafted) = (stats.num_accepted_draft_tokens, stats.num_draft_tokens);
    // The expected total variation of n answers over 64 bins is under sqrt(64 / n) / 2.
    let bound = (64.0 / number as f64).sqrt();
    println!(
        "{method:?}, branching {branching}: {number} answers, {accepted} of {drafted} drafts \
         accepted, chi-square {:.1} on {} degrees, p = {:.3}, total variation {:.5} < {bound:.5}",
        test.statistic, test.degrees, test.p_value, test.total_variation
    );
    assert!(test.p_value > LEVEL && test.total_variation < bound, "{test:?}");
    // At the second level some are accepted, and some are not.
    let deep = stats.accepted_per_position[1];
    assert!(stats.max_tree_depth == 2 && deep > number / 10, "{stats:?}");
    assert!(deep < stats.drafted_per_position[1] * 9 / 10, "{stats:?}");
}

const ALL: [(Method, usize); 4] =
    [(Method::Standard, 1), (Method::Standard, 3), (Method::Traversal, 1), (Method::Traversal, 3)];

#[test]
fn a_hundred_thousand_answers() {
    for (method, branching) in ALL {
        check(method, branching, 25_000);
    }
}

#[test]
#[ignore = "ten million answers, a quarter of an hour: run by make test-exact"]
fn ten_million_answers() {
    for (method, branching) in ALL {
        check(method, branching, 2_500_000);
    }
}
