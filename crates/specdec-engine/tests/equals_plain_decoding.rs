//! Law L1 on tiny random models: greedy and seeded answers are those of plain decoding, token by
//! token, for every drafter, width, batch and chunking.

mod runs;

use runs::sources::Source;
use runs::{Answer, Ask, Runner, drafting, greedy, open, run, seeded, tokens};
use specdec_core::{Budget, Drafter};
use specdec_engine::load::tokenizer::Tokenizer;
use specdec_engine::request::SamplingParams;
use specdec_testkit::gguf::TinyModel;
use std::sync::Arc;

const NEW_TOKENS: usize = 40;

/// Prompts of 1 to 90 tokens; the odd ones repeat themselves, so that n-grams find something.
fn prompts(vocab: usize) -> Vec<Vec<u32>> {
    let cycle = |salt, period, n| {
        let part = tokens(salt, period, vocab);
        (0..n).map(|i| part[i % period]).collect::<Vec<u32>>()
    };
    vec![tokens(11, 1, vocab), cycle(12, 5, 37), tokens(13, 66, vocab), cycle(14, 9, 90)]
}

struct Bench {
    scheduler: Runner,
    tokenizer: Arc<Tokenizer>,
    vocab: usize,
}

impl Bench {
    fn new(model: &TinyModel, prefill_rows: usize, source: Option<Source>) -> Self {
        let (decoder, tokenizer) = open(&model.temp_file(), |options| {
            options.prefill_rows = prefill_rows.max(4 * 9);
            options.max_num_seqs = 4;
            options.speculation = Some(specdec_engine::Speculation {
                num_speculative_tokens: 8,
                ..Default::default()
            });
        });
        let drafter = source
            .and_then(|source| source.shared(model, prefill_rows, usize::MAX))
            .map(|model| Box::new(model) as Box<dyn Drafter>);
        let scheduler = drafting(decoder, &tokenizer, drafter);
        Self { scheduler, tokenizer, vocab: model.vocab }
    }

    fn plain(&mut self, prompt: &[u32], params: &SamplingParams) -> Answer {
        let (prompt, params) = (prompt.to_vec(), params.clone());
        let ask = Ask { prompt, params, drafter: None, budget: None };
        run(&mut self.scheduler, &self.tokenizer, vec![ask]).remove(0)
    }
}

#[test]
fn every_drafter_width_batch_and_chunking_gives_the_plain_answer() {
    let mut checked = 0;
    for model in [TinyModel::llama_q4_1(), TinyModel::qwen2_k()] {
        for params in [greedy(NEW_TOKENS), seeded(5, NEW_TOKENS)] {
            let prompts = prompts(model.vocab);
            let mut bench = Bench::new(&model, 128, None);
            let plain: Vec<Answer> =
                prompts.iter().map(|prompt| bench.plain(prompt, &params)).collect();
            for chunk in [36, 64, 128] {
                for source in Source::ALL {
                    let mut bench = Bench::new(&model, chunk, Some(source));
                    checked += product(&mut bench, source, &prompts, &params, &plain);
                }
            }
        }
    }
    println!("{checked} answers equal to plain decoding");
}

/// All widths and batches of one source; returns the number of answers compared.
fn product(
    bench: &mut Bench,
    source: Source,
    prompts: &[Vec<u32>],
    params: &SamplingParams,
    plain: &[Answer],
) -> usize {
    let mut checked = 0;
    for width in 1..=8 {
        let (mut drafted, mut accepted) = (0, 0);
        for batch in [1, 4] {
            for group in (0..prompts.len()).collect::<Vec<_>>().chunks(batch) {
                let asks = group.iter().enumerate().map(|(id, &i)| {
                    let mut known = prompts[i].clone();
                    known.extend(&plain[i].tokens);
                    let salt = (width * 10 + i) as u64;
                    Ask {
                        prompt: prompts[i].clone(),
                        params: params.clone(),
                        drafter: source.own(id as u64, &known, bench.vocab, salt),
                        budget: Some(Budget { nodes: width, depth: width }),
                    }
                });
                let asks: Vec<Ask> = asks.collect();
                let answers = run(&mut bench.scheduler, &bench.tokenizer, asks);
                for (&i, answer) in group.iter().zip(&answers) {
                    let what = format!("{source:?} width {width} batch {batch} prompt {i}");
                    assert_eq!(answer.tokens, plain[i].tokens, "{what}");
                    assert_eq!(answer.text, plain[i].text, "{what}");
                    drafted += answer.stats.num_draft_tokens;
                    accepted += answer.stats.num_accepted_draft_tokens;
                    checked += 1;
                }
            }
        }
        assert!(accepted < drafted, "{source:?} width {width}: nothing was rejected");
        assert!(accepted > 0, "{source:?} width {width}: nothing was accepted");
    }
    checked
}
