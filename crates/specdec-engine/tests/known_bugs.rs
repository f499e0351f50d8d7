//! Faults that users of other implementations reported, as the smallest input that would show them
//! here; `tests/known_bugs.md` says which report each is from. What an answer must be is what plain
//! decoding gives.

mod runs;

use runs::engines::{PATIENCE, finish, load};
use runs::{Answer, Ask, Runner, greedy, open, run, scheduler, seeded, tokens};
use specdec_core::{Ask as CoreAsk, Budget, DraftError, Drafter, Origin};
use specdec_engine::load::tokenizer::Tokenizer;
use specdec_engine::request::SamplingParams;
use specdec_engine::{Engine, Event, Speculation};
use specdec_testkit::gguf::TinyModel;
use std::sync::Arc;

const NEW_TOKENS: usize = 24;
const WIDTH: usize = 4;

/// Proposes the chain that `next` makes of the context, as long as the budget allows.
struct Fixed<F>(F);

impl<F: FnMut(&[u32]) -> Vec<u32> + Send> Drafter for Fixed<F> {
    fn propose(&mut self, asks: &mut [CoreAsk<'_>]) -> Result<(), DraftError> {
        for ask in asks {
            let mut parent = None;
            for token in (self.0)(ask.context).into_iter().take(ask.budget.depth) {
                parent = ask.tree.push(parent, token, Origin::Deterministic).ok();
            }
        }
        Ok(())
    }

    fn commit(&mut self, _id: u64, _path: &[usize]) -> Result<(), DraftError> {
        Ok(())
    }

    fn release(&mut self, _id: u64) {}
}

type Own = Option<Box<dyn Drafter>>;

struct Bench {
    runner: Runner,
    tokenizer: Arc<Tokenizer>,
}

impl Bench {
    fn new(model: &TinyModel) -> Self {
        let (decoder, tokenizer) = open(&model.temp_file(), |options| {
            options.max_num_seqs = 4;
            options.speculation =
                Some(Speculation { num_speculative_tokens: WIDTH, ..Default::default() });
        });
        Self { runner: scheduler(decoder, &tokenizer), tokenizer }
    }

    fn answers(&mut self, asks: Vec<(Vec<u32>, SamplingParams, Own)>) -> Vec<Answer> {
        let ask = |(prompt, params, drafter): (_, _, Own)| {
            let budget = drafter.is_some().then_some(Budget { nodes: WIDTH, depth: WIDTH });
            Ask { prompt, params, drafter, budget }
        };
        run(&mut self.runner, &self.tokenizer, asks.into_iter().map(ask).collect())
    }

    fn plain(&mut self, prompt: &[u32], params: &SamplingParams) -> Answer {
        self.answers(vec![(prompt.to_vec(), params.clone(), None)]).remove(0)
    }
}

/// The text that is to come, of which a script proposes so many tokens and then a wrong one.
fn rights_then_wrong(
    truth: Vec<u32>,
    rights: usize,
    more: usize,
    vocab: usize,
) -> Box<dyn Drafter> {
    Box::new(Fixed(move |context: &[u32]| {
        let coming = truth.get(context.len()..).unwrap_or_default();
        let mut chain: Vec<u32> = coming.iter().copied().take(rights + 1 + more).collect();
        if let Some(wrong) = chain.get_mut(rights) {
            *wrong = (*wrong + 1) % vocab as u32;
        }
        chain
    }))
}

fn params() -> [SamplingParams; 2] {
    [greedy(NEW_TOKENS), seeded(3, NEW_TOKENS)]
}

#[test]
fn a_draft_that_always_proposes_the_end_ends_nothing() {
    let mut bench = Bench::new(&TinyModel::llama());
    let end = bench.tokenizer.end_ids()[0];
    for mut params in params() {
        params.ignore_eos = false;
        let prompt = tokens(1, 6, 300);
        let plain = bench.plain(&prompt, &params);
        let ends: Own = Some(Box::new(Fixed(move |_: &[u32]| vec![end; WIDTH])));
        let answer = bench.answers(vec![(prompt, params, ends)]).remove(0);
        assert_eq!((&answer.tokens, &answer.text), (&plain.tokens, &plain.text));
        assert!(answer.stats.num_draft_tokens > 0);
    }
}

#[test]
fn a_constant_draft_changes_nothing() {
    let mut bench = Bench::new(&TinyModel::llama());
    for params in params() {
        let prompt = tokens(2, 6, 300);
        let plain = bench.plain(&prompt, &params);
        for token in [0, 7, 299] {
            let constant: Own = Some(Box::new(Fixed(move |_: &[u32]| vec![token; WIDTH])));
            let answer = bench.answers(vec![(prompt.clone(), params.clone(), constant)]).remove(0);
            assert_eq!(answer.tokens, plain.tokens);
            assert!(answer.stats.num_accepted_draft_tokens < answer.stats.num_draft_tokens);
        }
    }
}

#[test]
fn what_agrees_behind_the_first_mistake_is_not_accepted() {
    let mut bench = Bench::new(&TinyModel::llama());
    for params in params() {
        let prompt = tokens(3, 6, 300);
        let plain = bench.plain(&prompt, &params);
        let truth = [prompt.clone(), plain.tokens.clone()].concat();
        for rights in 0..WIDTH {
            let script = Some(rights_then_wrong(truth.clone(), rights, 3, 300));
            let answer = bench.answers(vec![(prompt.clone(), params.clone(), script)]).remove(0);
            assert_eq!((&answer.tokens, &answer.text), (&plain.tokens, &plain.text));
            // The last step may be cut short.
            let accepted = &answer.stats.acceptance_histogram;
            assert_eq!(accepted[rights + 1..].iter().sum::<u64>(), 0, "{rights}: {accepted:?}");
            assert!(accepted[..rights].iter().sum::<u64>() <= 1, "{rights}: {accepted:?}");
            assert!(accepted[rights] >= NEW_TOKENS as u64 / (rights as u64 + 1) - 2);
        }
    }
}

#[test]
fn mates_that_draft_nothing_little_and_much_get_their_own_answers() {
    let mut bench = Bench::new(&TinyModel::qwen2_k());
    let vocab = TinyModel::qwen2_k().vocab;
    for params in params() {
        let prompts: Vec<_> = (0..4).map(|i| tokens(10 + i, 3 + 5 * i as usize, vocab)).collect();
        let plain: Vec<_> = prompts.iter().map(|prompt| bench.plain(prompt, &params)).collect();
        let asks = prompts.iter().zip(&plain).zip([0, 1, 3, 0]);
        let asks = asks.map(|((prompt, plain), length)| {
            let truth = [prompt.clone(), plain.tokens.clone()].concat();
            let own: Own = match length {
                0 => Some(Box::new(Fixed(|_: &[u32]| Vec::new()))),
                length => Some(rights_then_wrong(truth, length - 1, 0, vocab)),
            };
            (prompt.clone(), params.clone(), own)
        });
        let answers = bench.answers(asks.collect());
        for (answer, plain) in answers.iter().zip(&plain) {
            assert_eq!((&answer.tokens, &answer.text), (&plain.tokens, &plain.text));
        }
        assert_eq!(answers[0].stats.num_draft_tokens, 0);
        assert!(answers[2].stats.num_accepted_draft_tokens > 0);
    }
}

#[test]
fn a_window_is_crossed_within_a_block() {
    let model = TinyModel::gemma3();
    let window = model.window.unwrap();
    let mut bench = Bench::new(&model);
    for params in params() {
        for length in [window - 1, window, 3 * window - 1] {
            let prompt = tokens(4, length, model.vocab);
            let plain = bench.plain(&prompt, &params);
            let truth = [prompt.clone(), plain.tokens.clone()].concat();
            let script = Some(rights_then_wrong(truth, 2, 0, model.vocab));
            let answer = bench.answers(vec![(prompt, params.clone(), script)]).remove(0);
            assert_eq!(answer.tokens, plain.tokens, "{length} of {window}");
            assert!(answer.stats.num_accepted_draft_tokens > 0);
        }
    }
}

fn engine(max_num_seqs: usize) -> (Engine, Vec<u32>) {
    let model = TinyModel::llama();
    let engine = load(&model, |options| {
        options.max_num_seqs = max_num_seqs;
        options.speculation = Some(Speculation::default());
    });
    (engine, tokens(5, 4, model.vocab).repeat(5))
}

#[test]
fn a_client_may_go_at_any_step() {
    let (engine, prompt) = engine(1);
    let alone = finish(&engine.submit(prompt.clone(), greedy(30)).unwrap());
    for steps in 0..12 {
        let handle = engine.submit(prompt.clone(), greedy(400)).unwrap();
        for _ in 0..steps {
            let event = handle.recv_timeout(PATIENCE).unwrap();
            assert!(matches!(event, Some(Event::Chunk(_) | Event::Done(..))));
        }
        drop(handle);
        let next = engine.submit(prompt.clone(), greedy(30)).unwrap();
        assert_eq!(finish(&next), alone, "after {steps} steps");
    }
}

#[test]
fn cancelling_one_that_waits_leaves_the_one_that_runs() {
    let (engine, prompt) = engine(1);
    let alone = finish(&engine.submit(prompt.clone(), greedy(60)).unwrap());
    let runs = engine.submit(prompt.clone(), greedy(60)).unwrap();
    let waits = engine.submit(prompt.clone(), greedy(60)).unwrap();
    let behind = engine.submit(prompt, greedy(60)).unwrap();
    drop(waits);
    assert_eq!(finish(&runs), alone);
    assert_eq!(finish(&behind), alone);
}
