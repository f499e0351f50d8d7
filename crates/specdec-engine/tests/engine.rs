//! The engine around the step: life, death, and bad input.

mod runs;

use runs::engines::{PATIENCE, finish, load};
use runs::{greedy, tokens};
use specdec_core::FinishReason;
use specdec_engine::load::LoadError;
use specdec_engine::{Engine, EngineError, EngineOptions, Event, Speculation};
use specdec_testkit::gguf::{Fault, TinyModel, temp_file_of};
use std::time::Duration;

#[test]
fn many_threads_share_one_engine_and_each_gets_its_solo_answer() {
    let model = TinyModel::llama_q4_1();
    let engine = load(&model, |options| options.speculation = Some(Speculation::default()));
    let prompts: Vec<Vec<u32>> =
        (0..8).map(|i| tokens(i, 3 + 7 * i as usize, model.vocab)).collect();
    let solo: Vec<_> = prompts
        .iter()
        .map(|prompt| finish(&engine.submit(prompt.clone(), greedy(30)).unwrap()))
        .collect();
    std::thread::scope(|scope| {
        for (prompt, expected) in prompts.iter().zip(&solo) {
            let engine = &engine;
            scope.spawn(move || {
                for _ in 0..3 {
                    let handle = engine.submit(prompt.clone(), greedy(30)).unwrap();
                    assert_eq!(finish(&handle), *expected);
                }
            });
        }
    });
    let metrics = engine.metrics(true).unwrap();
    assert!(metrics.steps > 0 && metrics.forward > Duration::ZERO);
    assert_eq!(engine.metrics(false).unwrap().steps, 0);
}

#[test]
fn a_dropped_handle_frees_its_place() {
    let model = TinyModel::llama();
    let engine = load(&model, |options| options.max_num_seqs = 1);
    let prompt = tokens(1, 4, model.vocab);
    let long = greedy(model.context - 4);
    for _ in 0..5 {
        let handle = engine.submit(prompt.clone(), long.clone()).unwrap();
        assert!(matches!(handle.recv_timeout(PATIENCE).unwrap(), Some(Event::Chunk(_))));
    }
    let said = finish(&engine.submit(prompt, greedy(3)).unwrap());
    assert_eq!((said.tokens.len(), said.reason), (3, FinishReason::Length));
}

#[test]
fn the_context_is_filled_to_its_last_position_and_not_beyond() {
    let model = TinyModel::llama();
    for room in [1, 2, 5] {
        let engine = load(&model, |options| {
            options.max_model_len = Some(40);
            options.speculation = Some(Speculation::default());
        });
        let part = tokens(3, 5, model.vocab);
        let prompt: Vec<u32> = (0..40 - room).map(|i| part[i % 5]).collect();
        let said = finish(&engine.submit(prompt, greedy(100)).unwrap());
        assert_eq!((said.tokens.len(), said.reason), (room, FinishReason::Length));
    }
}

#[test]
fn close_ends_open_requests_and_later_calls_say_so() {
    let model = TinyModel::llama();
    let engine = load(&model, |_| ());
    let prompt = tokens(1, 4, model.vocab);
    let handle = engine.submit(prompt.clone(), greedy(model.context - 4)).unwrap();
    engine.close();
    engine.close();
    let end = loop {
        match handle.recv_timeout(PATIENCE) {
            Ok(Some(Event::Chunk(_))) => {}
            end => break end,
        }
    };
    assert!(matches!(end, Err(EngineError::Closed) | Ok(Some(Event::Done(..)))), "{end:?}");
    assert!(matches!(engine.submit(prompt, greedy(1)), Err(EngineError::Closed)));
    assert!(matches!(engine.metrics(false), Err(EngineError::Closed)));
}

#[test]
fn bad_requests_are_refused_with_their_reason() {
    let model = TinyModel::llama();
    let engine = load(&model, |options| options.max_model_len = Some(16));
    let submit = |prompt: Vec<u32>| engine.submit(prompt, greedy(1)).map(|_| ()).unwrap_err();
    assert!(matches!(submit(Vec::new()), EngineError::EmptyPrompt));
    let vocab = model.vocab;
    let foreign = submit(vec![0, vocab as u32]);
    assert!(matches!(foreign, EngineError::PromptToken { index: 1, .. }));
    let long = submit(vec![0; 16]);
    assert!(matches!(long, EngineError::ContextLength { tokens: 16, limit: 15, context: 16 }));
    let refused = |change: fn(&mut specdec_engine::SamplingParams)| {
        let mut params = greedy(1);
        change(&mut params);
        match engine.submit(vec![1], params).map(|_| ()).unwrap_err() {
            EngineError::Config { field, .. } => field,
            error => panic!("{error}"),
        }
    };
    assert_eq!(refused(|params| params.max_tokens = 0), "max_tokens");
    assert_eq!(refused(|params| params.stop = vec![String::new()]), "stop");
    assert_eq!(refused(|params| params.stop = vec!["x".repeat(33_000); 2]), "stop");
    assert_eq!(refused(|params| params.stop_token_ids = vec![u32::MAX]), "stop_token_ids");
    assert_eq!(refused(|params| params.logprobs = Some(21)), "logprobs");
}

#[test]
fn bad_options_are_refused_before_the_file_is_opened() {
    let refused = |change: fn(&mut EngineOptions)| {
        let mut options = EngineOptions::new("/no/such/file");
        change(&mut options);
        Engine::load(&options, &mut |_, _| ()).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused(|options| options.max_num_seqs = 0).starts_with("max_num_seqs is 0"));
    assert!(refused(|options| options.num_threads = Some(0)).starts_with("num_threads is 0"));
    let speculate = |num_speculative_tokens, prompt_lookup_min, prompt_lookup_max| Speculation {
        num_speculative_tokens,
        prompt_lookup_min,
        prompt_lookup_max,
        ..Speculation::default()
    };
    for (bad, field) in [
        (speculate(0, 1, 1), "num_speculative_tokens"),
        (speculate(65, 1, 1), "num_speculative_tokens"),
        (speculate(4, 0, 1), "prompt_lookup_min"),
        (speculate(4, 3, 2), "prompt_lookup_max"),
    ] {
        let mut options = EngineOptions::new("/no/such/file");
        options.speculation = Some(bad);
        let error = Engine::load(&options, &mut |_, _| ()).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(field), "{error}");
    }
    assert!(refused(|_| ()).contains("/no/such/file"));
}

#[test]
fn bad_files_are_refused_with_their_reason() {
    let model = TinyModel::llama();
    let error = |bytes: &[u8]| {
        let file = temp_file_of(bytes);
        Engine::load(&EngineOptions::new(&*file), &mut |_, _| ()).map(|_| ()).unwrap_err()
    };
    for fault in Fault::ALL {
        let found = error(&fault.plant(&model).unwrap());
        let fitting = match fault {
            Fault::NanWeight | Fault::InfiniteWeight | Fault::NanNorm => {
                matches!(found, EngineError::Tensor { .. })
            }
            _ => matches!(found, EngineError::Load(_)),
        };
        assert!(fitting, "{fault:?}: {found}");
    }
    let pickle = error(b"PK\x03\x04 and more that is no model");
    assert!(matches!(pickle, EngineError::Load(LoadError::NotGguf { .. })));
}

#[test]
fn a_full_queue_says_so_and_a_place_is_free_again_when_a_request_ends() {
    let model = TinyModel::llama();
    let engine = load(&model, |options| {
        options.max_num_seqs = 1;
        options.max_queued = 1;
    });
    let prompt = tokens(1, 4, model.vocab);
    let open: Vec<_> =
        (0..2).map(|_| engine.submit(prompt.clone(), greedy(300)).unwrap()).collect();
    let full = engine.submit(prompt.clone(), greedy(1)).map(|_| ()).unwrap_err();
    assert!(matches!(full, EngineError::QueueFull { open: 2, limit: 2 }), "{full}");
    for handle in &open {
        assert_eq!(finish(handle).tokens.len(), 300);
    }
    assert_eq!(finish(&engine.submit(prompt, greedy(1)).unwrap()).tokens.len(), 1);
}
