//! The laws on real weights (SmolLM2-135M): rows do not know each other, and greedy and seeded
//! answers are those of plain decoding.

mod runs;

use runs::{Answer, Ask, greedy, open, real_model, run, scheduler, seeded};
use specdec_core::{Budget, Ngram};
use specdec_engine::cache::SeqCache;
use specdec_engine::load::Specials;
use specdec_engine::model::rows::Row;
use specdec_engine::request::SamplingParams;
use specdec_kernels::Level;

const MODEL: &str = "SPECDEC_TEST_MODEL_SMOLLM2";

/// Texts that repeat themselves more or less, as prompt lookup likes them.
const PROMPTS: [&str; 4] = [
    "def area(width, height):\n    return width * height\n\ndef volume(width, height, depth):\n",
    "<|im_start|>user\nRepeat after me: one two three, one two three.<|im_end|>\n\
     <|im_start|>assistant\n",
    "The capital of France is Paris. The capital of Italy is Rome. The capital of",
    "{\"name\": \"Ada\", \"born\": 1815}\n{\"name\": \"Alan\", \"born\": 1912}\n{\"name\":",
];

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn rows_of_real_weights_do_not_know_each_other() {
    let path = real_model(MODEL);
    let mut expected: Option<Vec<Vec<u32>>> = None;
    for level in Level::available() {
        for (threads, chunk) in [(1, 1), (2, 7), (2, 33)] {
            let (mut decoder, tokenizer) = open(&path, |options| {
                options.num_threads = Some(threads);
                options.level = Some(level);
                options.max_num_seqs = 40;
            });
            // The scalar level proves the same with fewer rows: it is some fifty times slower.
            let len = if level == Level::Scalar { 8 } else { 33 };
            let text = tokenizer.encode(PROMPTS[2].repeat(3).as_str(), Specials::Parse, false);
            let mut cache = SeqCache::default();
            let mut logits = Vec::new();
            for part in text[..len].chunks(chunk) {
                let row = |(i, &token): (usize, &u32)| Row {
                    token,
                    seq: 0,
                    parent: i.checked_sub(1),
                    logits: true,
                    hidden: false,
                };
                let rows: Vec<Row> = part.iter().enumerate().map(row).collect();
                decoder.forward(&mut [&mut cache], &rows).unwrap();
                logits.extend((0..rows.len()).map(|i| bits(decoder.logits(i).unwrap())));
                decoder.commit(&mut cache, &(0..rows.len()).collect::<Vec<_>>()).unwrap();
            }
            match &mut expected {
                Some(known) => {
                    let common = known.len().min(logits.len());
                    assert!(known[..common] == logits[..common], "{level} {threads} {chunk}");
                    if logits.len() > known.len() {
                        *known = logits;
                    }
                }
                None => expected = Some(logits),
            }
        }
    }
}

#[test]
fn answers_of_real_weights_are_those_of_plain_decoding() {
    let (decoder, tokenizer) = open(&real_model(MODEL), |options| {
        options.num_threads = Some(2);
        options.speculation =
            Some(specdec_engine::Speculation { num_speculative_tokens: 8, ..Default::default() });
    });
    let mut scheduler = scheduler(decoder, &tokenizer);
    let prompts = PROMPTS.map(|text| tokenizer.encode(text, Specials::Parse, false));
    let ask = |i: usize, params: &SamplingParams, width: usize, branching: usize| Ask {
        prompt: prompts[i].clone(),
        params: params.clone(),
        drafter: Some(Box::new(Ngram::new(1, 4, branching).unwrap())),
        budget: (width > 0).then_some(Budget { nodes: width, depth: width }),
    };
    for params in [greedy(48), seeded(3, 48)] {
        let plain: Vec<Answer> = (0..4)
            .map(|i| run(&mut scheduler, &tokenizer, vec![ask(i, &params, 0, 1)]).remove(0))
            .collect();
        for (width, branching) in [(1, 1), (4, 1), (4, 2), (8, 1), (8, 3)] {
            let asks = (0..4).map(|i| ask(i, &params, width, branching)).collect();
            let together = run(&mut scheduler, &tokenizer, asks);
            let (mut drafted, mut accepted) = (0, 0);
            for (i, answer) in together.iter().enumerate() {
                assert_eq!(answer.tokens, plain[i].tokens, "prompt {i} width {width}");
                assert_eq!(answer.text, plain[i].text, "prompt {i} width {width}");
                drafted += answer.stats.num_draft_tokens;
                accepted += answer.stats.num_accepted_draft_tokens;
            }
            assert!(0 < accepted && accepted < drafted, "{accepted} of {drafted}, width {width}");
        }
    }
}
