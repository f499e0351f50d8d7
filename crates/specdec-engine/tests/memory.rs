//! Budgets of memory: kept, used, and refused before a weight is read; small ones change no text.

mod runs;

use runs::engines::{PATIENCE, finish};
use runs::{greedy, recipes, tokens};
use specdec_engine::memory::MemoryReport;
use specdec_engine::{Engine, EngineError, EngineOptions, Event, Source, Speculation};
use specdec_testkit::gguf::TinyModel;

fn total(report: &MemoryReport) -> usize {
    [report.target, report.draft].map(|part| part.weights + part.kv + part.activations).iter().sum()
}

fn load(options: &EngineOptions) -> Result<Engine, EngineError> {
    Engine::load(options, &mut |_, _| ())
}

/// The least budget, as the error for a smaller one tells; no weight is read for it.
fn least(options: &EngineOptions) -> usize {
    let options = EngineOptions { memory_budget: Some(1), ..options.clone() };
    let error = Engine::load(&options, &mut |_, _| panic!("a weight was read")).map(|_| ());
    match error {
        Err(EngineError::Memory { budget: 1, needed, .. }) => needed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_least_budget_holds_one_context_and_a_byte_less_is_refused() {
    for (name, model) in recipes() {
        let file = model.temp_file();
        let mut options = EngineOptions::new(&*file);
        options.num_threads = Some(1);
        let least = least(&options);
        options.memory_budget = Some(least);
        let engine = load(&options).unwrap();
        let report = engine.memory();
        assert!(total(report) <= least, "{name}: {report:?} in {least}");
        assert!(report.kv_tokens >= model.context, "{name}: {report:?}");
        options.memory_budget = Some(least - 1);
        assert!(matches!(load(&options).err(), Some(EngineError::Memory { .. })), "{name}");
    }
}

#[test]
fn a_budget_is_kept_and_what_it_leaves_becomes_cache() {
    let model = TinyModel::llama_q4_1();
    let draft = TinyModel { layers: 1, ..model.clone() };
    let (file, draft_file) = (model.temp_file(), draft.temp_file());
    let page = |layers| 64 * 2 * layers * model.kv_heads * model.head_dim * 2;
    for with_draft in [false, true] {
        let mut options = EngineOptions::new(&*file);
        options.num_threads = Some(1);
        options.max_num_seqs = 4;
        let draft = Source::DraftModel(draft_file.to_path_buf());
        options.speculation =
            with_draft.then(|| Speculation { sources: vec![draft], ..Speculation::default() });
        let least = least(&options);
        for more in [0, 10_000, 300_000, 1_000_000] {
            options.memory_budget = Some(least + more);
            let engine = load(&options).unwrap();
            let report = engine.memory();
            let pages = page(model.layers) + if with_draft { page(1) } else { 0 };
            let slack = least + more - total(report);
            let whole = report.kv_tokens / 64 == 4 * (model.context + 4).div_ceil(64);
            // Activations are planned for all forms of the registers.
            let registers = report.target.activations + report.draft.activations;
            assert!(whole || slack < pages + registers / 4, "{slack} left of {more}: {report:?}");
            assert_eq!(report.draft_kv_tokens > 0, with_draft);
            assert_eq!(report.kv_tokens_lost_to_draft > 0, with_draft && !whole);
        }
    }
}

#[test]
fn a_draft_is_left_out_where_the_engine_chose_it_and_refused_where_it_was_asked_for() {
    let model = TinyModel::llama_q4_1();
    let (file, draft) = (model.temp_file(), TinyModel { layers: 1, ..model.clone() }.temp_file());
    let mut options = EngineOptions::new(&*file);
    options.num_threads = Some(1);
    let alone = least(&options);
    let speculation = |automatic| Speculation {
        sources: vec![Source::DraftModel(draft.to_path_buf()), Source::Ngram],
        automatic,
        ..Speculation::default()
    };
    options.speculation = Some(speculation(true));
    options.memory_budget = Some(alone + 100_000);
    let engine = load(&options).unwrap();
    assert!(engine.memory().draft_left_out);
    assert_eq!((engine.memory().draft.weights, engine.memory().draft_kv_tokens), (0, 0));
    let prompt = tokens(1, 3, model.vocab).repeat(9);
    let handle = engine.submit(prompt, greedy(30)).unwrap();
    while !matches!(handle.recv_timeout(PATIENCE).unwrap(), Some(Event::Done(..))) {}
    options.speculation = Some(speculation(false));
    let error = load(&options).err().unwrap();
    assert!(error.to_string().contains("leave the draft model out"), "{error}");
    options.speculation = Some(speculation(true));
    options.memory_budget = None;
    assert!(!load(&options).unwrap().memory().draft_left_out);
}

#[test]
fn requests_that_share_the_least_budget_get_the_answers_that_they_get_alone() {
    let model = TinyModel::llama_q4_1();
    let file = model.temp_file();
    let mut options = EngineOptions::new(&*file);
    options.num_threads = Some(1);
    options.max_model_len = Some(200);
    options.speculation = Some(Speculation { prompt_lookup_min: 1, ..Speculation::default() });
    options.memory_budget = Some(least(&options));
    let engine = load(&options).unwrap();
    let prompts: Vec<_> = (0..6).map(|i| tokens(i, 5 + 9 * i as usize, model.vocab)).collect();
    let submit = |prompt: &Vec<u32>| engine.submit(prompt.clone(), greedy(90)).unwrap();
    let alone: Vec<_> = prompts.iter().map(|prompt| finish(&submit(prompt))).collect();
    assert_eq!(engine.metrics(true).unwrap().preemptions, 0);
    let handles: Vec<_> = prompts.iter().map(submit).collect();
    for (handle, alone) in handles.iter().zip(&alone) {
        assert_eq!(finish(handle), *alone);
    }
    assert!(engine.metrics(false).unwrap().preemptions > 0);
}
