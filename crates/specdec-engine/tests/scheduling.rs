//! Law L1 under want of room: requests that come and go, give way, are read anew and share what
//! begins alike get the answers that they get alone, for every drafter.

mod runs;

use runs::sources::{Shared, Source};
use runs::{Answer, Ask, Runner, drafting, greedy, open, run, seeded, sequence, tokens};
use specdec_core::{Budget, Drafter};
use specdec_engine::EngineError;
use specdec_engine::load::Tokenizer;
use specdec_engine::request::SamplingParams;
use specdec_testkit::gguf::{Noise, TinyModel};
use std::sync::Arc;

const NEW_TOKENS: usize = 60;
const REQUESTS: usize = 24;
const WIDTH: usize = 4;

/// Rows of a pass: a prompt takes several.
const ROWS: usize = 48;

struct Bench {
    runner: Runner,
    tokenizer: Arc<Tokenizer>,
    draft: Option<Shared>,
}

impl Bench {
    /// A scheduler whose caches have at most so many pages.
    fn new(model: &TinyModel, source: Option<Source>, pages: usize, keeps: bool) -> Self {
        let (decoder, tokenizer) = open(&model.temp_file(), |options| {
            options.prefill_rows = ROWS;
            options.max_num_seqs = 8;
            options.speculation = Some(specdec_engine::Speculation::default());
        });
        let draft = source.and_then(|source| source.shared(model, 128, pages));
        let others = draft.clone().map(|model| Box::new(model) as Box<dyn Drafter>);
        let runner = drafting(decoder.limited(pages, keeps), &tokenizer, others);
        Self { runner, tokenizer, draft }
    }

    /// One request alone, drafted for by nobody.
    fn plain(&mut self, request: &Request) -> Answer {
        run(&mut self.runner, &self.tokenizer, vec![request.ask(None)]).remove(0)
    }

    /// Rows that all passes had so far.
    fn rows(&self) -> usize {
        let by_rows = self.runner.scheduler.metrics().forward_by_rows.iter();
        by_rows.map(|(rows, (passes, _))| rows * *passes as usize).sum()
    }

    fn cached(&self) -> u64 {
        self.runner.scheduler.metrics().prefix_cache_hits
    }

    /// Nobody is left, so nothing is held: not by sequences, and not by the draft.
    fn check_empty(&self) {
        let pages = self.runner.scheduler.decoder().pages();
        assert_eq!(pages.free(), pages.total(), "a page leaked");
        if let Some(draft) = &self.draft {
            let draft = draft.lock();
            let pages = draft.decoder().pages();
            assert_eq!(pages.free(), pages.total(), "a page of the draft leaked");
        }
    }
}

#[derive(Clone)]
struct Request {
    prompt: Vec<u32>,
    params: SamplingParams,
    /// Steps before it comes, and before its caller goes.
    arrives: usize,
    leaves: usize,
}

impl Request {
    fn ask(&self, drafter: Option<Box<dyn Drafter>>) -> Ask {
        let budget = drafter.is_some().then_some(Budget { nodes: WIDTH, depth: WIDTH });
        Ask { prompt: self.prompt.clone(), params: self.params.clone(), drafter, budget }
    }
}

/// Requests of which three begin alike at a time; some repeat themselves, so that n-grams find
/// something; some leave early.
fn requests(vocab: usize) -> Vec<Request> {
    let noise = Noise::new(3, "storm");
    let request = |i: usize| {
        let pick = |what: u64, below| noise.below(what * 100 + i as u64, below) as usize;
        let period = [7, 150][i % 2];
        let part = tokens((i / 3) as u64, period, vocab);
        let prompt = (0..=pick(0, 150)).map(|at| part[at % period]).collect();
        let params = if i.is_multiple_of(2) { greedy(NEW_TOKENS) } else { seeded(5, NEW_TOKENS) };
        let leaves = if i % 4 == 3 { 1 + pick(1, 40) } else { usize::MAX };
        Request { prompt, params, arrives: pick(2, 30), leaves }
    };
    (0..REQUESTS).map(request).collect()
}

/// Runs all requests as they come and go; their answers, whole or in part.
fn storm(bench: &mut Bench, source: Source, requests: &[Request], plain: &[Answer]) -> Vec<Answer> {
    let model = TinyModel::llama_q4_1();
    let mut answers = vec![Answer::default(); requests.len()];
    for step in 0.. {
        assert!(step < 10_000, "nobody gets on");
        for (id, request) in requests.iter().enumerate() {
            let id_ = id as u64;
            if request.arrives == step {
                let known = [&request.prompt[..], &plain[id].tokens].concat();
                let mut ask = request.ask(None);
                ask.budget = Some(Budget { nodes: WIDTH, depth: WIDTH });
                if let Some(own) = source.own(id_, &known, model.vocab, id_) {
                    bench.runner.own.lock().unwrap().insert(id_, own);
                }
                let seq = sequence(id_, ask, model.context, model.vocab, &bench.tokenizer);
                bench.runner.scheduler.add(seq);
            }
            if request.leaves.checked_add(request.arrives) == Some(step) {
                bench.runner.scheduler.cancel(|id| id == id_);
            }
        }
        for update in bench.runner.scheduler.step().unwrap() {
            answers[update.id as usize].add(update);
        }
        if step > 100 && bench.runner.scheduler.is_idle() {
            break;
        }
    }
    bench.runner.own.lock().unwrap().clear();
    answers
}

#[test]
fn requests_that_give_way_and_share_get_the_answers_that_they_get_alone() {
    let model = TinyModel::llama_q4_1();
    let requests = requests(model.vocab);
    let mut alone = Bench::new(&model, None, usize::MAX, false);
    let plain: Vec<_> = requests.iter().map(|request| alone.plain(request)).collect();
    for source in Source::ALL {
        for (pages, keeps) in [(5, true), (8, true), (5, false), (usize::MAX, true)] {
            let mut bench = Bench::new(&model, Some(source), pages, keeps);
            let answers = storm(&mut bench, source, &requests, &plain);
            let (mut drafted, mut accepted) = (0, 0);
            for (i, (answer, plain)) in answers.iter().zip(&plain).enumerate() {
                let what = format!("{source:?} on {pages} pages, {keeps}, request {i}");
                if requests[i].leaves == usize::MAX {
                    assert_eq!(answer.tokens, plain.tokens, "{what}");
                    assert_eq!(answer.text, plain.text, "{what}");
                } else {
                    assert!(plain.tokens.starts_with(&answer.tokens), "{what}");
                    assert!(plain.text.starts_with(&answer.text), "{what}");
                }
                drafted += answer.stats.num_draft_tokens;
                accepted += answer.stats.num_accepted_draft_tokens;
            }
            bench.check_empty();
            let metrics = bench.runner.scheduler.metrics();
            let told: usize = answers.iter().map(|answer| answer.preemptions).sum();
            assert!(told as u64 <= metrics.preemptions, "{told} {metrics:?}");
            assert_eq!(metrics.preemptions > 5, pages < 9, "{source:?} {pages}: {metrics:?}");
            let hits = metrics.prefix_cache_hits;
            let right = if keeps { hits > 0 || pages < usize::MAX } else { hits == 0 };
            assert!(right, "{source:?} {pages}: {metrics:?}");
            assert!(0 < accepted && accepted < drafted, "{source:?}: {accepted} of {drafted}");
            assert_eq!(metrics.draft_failures, 0);
        }
    }
}

#[test]
fn a_text_that_is_known_is_not_read_again() {
    let model = TinyModel::llama_q4_1();
    let all = tokens(9, 200, model.vocab);
    for params in [greedy(20), seeded(3, 20)] {
        let request = |len: usize| Request {
            prompt: all[..len].to_vec(),
            params: params.clone(),
            arrives: 0,
            leaves: usize::MAX,
        };
        let mut cold = Bench::new(&model, None, usize::MAX, false);
        let mut warm = Bench::new(&model, None, usize::MAX, true);
        warm.plain(&request(200));
        // Full pages only, and at least one token is read.
        for (len, cached) in [(200, 192), (193, 192), (192, 128), (129, 128), (64, 0), (1, 0)] {
            let before = (warm.rows(), warm.cached());
            let (expected, answer) = (cold.plain(&request(len)), warm.plain(&request(len)));
            assert_eq!((answer.tokens, answer.text), (expected.tokens, expected.text), "{len}");
            assert_eq!((answer.cached, expected.cached), (cached, 0));
            assert_eq!(warm.cached() - before.1, cached as u64);
            assert_eq!(warm.rows() - before.0, len - cached + 19);
        }
        assert_eq!(cold.cached(), 0);
    }
}

#[test]
fn an_answer_is_known_when_the_conversation_goes_on() {
    let model = TinyModel::llama_q4_1();
    let mut bench = Bench::new(&model, None, usize::MAX, true);
    let ask =
        |prompt: Vec<u32>| Request { prompt, params: greedy(60), arrives: 0, leaves: usize::MAX };
    let first = ask(tokens(4, 90, model.vocab));
    let said = bench.plain(&first).tokens;
    let second = ask([first.prompt, said, tokens(5, 9, model.vocab)].concat());
    assert_eq!(bench.plain(&second).cached, 128);
}

#[test]
fn answers_to_one_prompt_read_it_once() {
    let model = TinyModel::llama_q4_1();
    let prompt = tokens(6, 300, model.vocab);
    let ask = |seed| Request {
        prompt: prompt.clone(),
        params: seeded(seed, 8),
        arrives: 0,
        leaves: usize::MAX,
    };
    let mut cold = Bench::new(&model, None, usize::MAX, false);
    let expected: Vec<_> = (0..4).map(|seed| cold.plain(&ask(seed)).tokens).collect();
    let mut bench = Bench::new(&model, None, usize::MAX, true);
    let asks = (0..4).map(|seed| ask(seed).ask(None)).collect();
    let answers = run(&mut bench.runner, &bench.tokenizer, asks);
    assert_eq!(answers.iter().map(|answer| answer.tokens.clone()).collect::<Vec<_>>(), expected);
    // The rest of the last page is read by each.
    let most = 300 + 3 * (ROWS + 64) + 4 * 8;
    assert!(bench.rows() < most, "{} rows", bench.rows());
}

#[test]
fn log_probabilities_of_a_prompt_are_computed_although_it_is_known() {
    let model = TinyModel::llama_q4_1();
    let request = |salt| {
        let params = SamplingParams { prompt_logprobs: Some(2), ..greedy(60) };
        Request { prompt: tokens(salt, 100, model.vocab), params, arrives: 0, leaves: usize::MAX }
    };
    let requests = [request(1), request(2)];
    let mut cold = Bench::new(&model, None, usize::MAX, false);
    let expected = requests.each_ref().map(|request| cold.plain(request));
    let mut bench = Bench::new(&model, None, 5, true);
    for (request, expected) in requests.iter().zip(&expected) {
        assert_eq!(bench.plain(request), *expected);
        assert_eq!(bench.plain(request), *expected);
    }
    // The second of two gives way, and does not hear its prompt twice.
    let asks = requests.iter().map(|request| request.ask(None)).collect();
    let answers = run(&mut bench.runner, &bench.tokenizer, asks);
    assert!(bench.runner.scheduler.metrics().preemptions > 0);
    for (answer, expected) in answers.iter().zip(&expected) {
        assert_eq!(answer.prompt_logprobs, expected.prompt_logprobs);
        assert_eq!(answer.tokens, expected.tokens);
    }
}

#[test]
fn what_no_cache_could_hold_is_refused_and_nobody_else_notices() {
    let model = TinyModel::llama_q4_1();
    let mut bench = Bench::new(&model, None, 2, true);
    let ask = |len| Request {
        prompt: tokens(8, len, model.vocab),
        params: greedy(28),
        arrives: 0,
        leaves: usize::MAX,
    };
    let expected = bench.plain(&ask(100)).tokens;
    for (id, len) in [(0, 100), (1, 101), (2, 100)] {
        let ask = ask(len).ask(None);
        let seq = sequence(id, ask, model.context, model.vocab, &bench.tokenizer);
        bench.runner.scheduler.add(seq);
    }
    let mut answers = vec![Answer::default(); 3];
    let mut refused = Vec::new();
    while !bench.runner.scheduler.is_idle() {
        for mut update in bench.runner.scheduler.step().unwrap() {
            match update.end.take() {
                Some(Err(error)) => refused.push((update.id, error)),
                end => answers[update.id as usize].add(runs::Update { end, ..update }),
            }
        }
    }
    assert!(matches!(refused[..], [(1, EngineError::CacheFull { needed: 3, free: 2 })]));
    assert_eq!([&answers[0].tokens, &answers[2].tokens], [&expected, &expected]);
    bench.check_empty();
}
