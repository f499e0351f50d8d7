//! A fault inside the engine thread: everybody who waits hears of it, and nobody waits for ever.

mod runs;

use runs::engines::PATIENCE;
use runs::hooked::{device, engine};
use runs::{greedy, tokens};
use specdec_engine::load::Gguf;
use specdec_engine::{Engine, EngineError, Event, ReadyQueue, RequestHandle};
use specdec_kernels::PoolError;
use specdec_testkit::gguf::TinyModel;

/// An engine whose device works for some passes and then does not.
fn failing(mut passes: usize, panics: bool) -> Engine {
    let before = move || match passes.checked_sub(1) {
        Some(left) => {
            passes = left;
            Ok(())
        }
        None if panics => panic!("a bug in the device"),
        None => Err(PoolError::Panicked { message: "in a tile".to_owned() }.into()),
    };
    engine(2, 8, Box::new(before))
}

/// How a request ends that cannot end well.
fn end(handle: &RequestHandle) -> EngineError {
    loop {
        match handle.recv_timeout(PATIENCE) {
            Ok(Some(Event::Chunk(_))) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => return error,
        }
    }
}

#[test]
fn activations_beyond_the_system_s_memory_are_an_error() {
    let file = Gguf::open(TinyModel::llama().temp_file()).unwrap();
    // Beyond what an address of this machine can name, so that no overcommitting grants it.
    let error = device(&file, 1 << 40).map(drop).unwrap_err();
    assert!(matches!(&error, EngineError::Activations { logits, .. } if *logits == 1 << 40));
}

#[test]
fn a_fault_reaches_every_request_with_its_words_and_closes_the_door() {
    for (panics, words) in [(true, "a bug in the device"), (false, "in a tile")] {
        let engine = failing(3, panics);
        let prompt = tokens(1, 4, TinyModel::llama().vocab);
        // Two run, one waits.
        let handles: Vec<RequestHandle> =
            (0..3).filter_map(|_| engine.submit(prompt.clone(), greedy(100)).ok()).collect();
        assert!(!handles.is_empty());
        for handle in &handles {
            let EngineError::Dead { message } = end(handle) else { panic!("not dead") };
            assert!(message.contains(words), "{message}");
        }
        let late = engine.submit(prompt, greedy(1)).map(|_| ());
        assert!(matches!(late, Err(EngineError::Dead { .. })));
        engine.close();
    }
}

#[test]
fn a_fault_is_announced_to_who_waits_for_many() {
    let engine = failing(3, true);
    let prompt = tokens(1, 4, TinyModel::llama().vocab);
    let ready = ReadyQueue::default();
    let submit = |tag| {
        let notifier = ready.notifier(tag);
        engine.submit_all(prompt.clone(), greedy(100), 1, Some(&notifier)).ok()
    };
    let mut open: Vec<(u64, RequestHandle)> =
        (0..5).filter_map(|tag| Some((tag, submit(tag)?.pop()?))).collect();
    assert!(!open.is_empty());
    while !open.is_empty() {
        let tags = ready.wait();
        open.retain(|(tag, handle)| {
            if !tags.contains(tag) {
                return true;
            }
            loop {
                match handle.try_recv() {
                    Ok(Some(Event::Chunk(_))) => {}
                    Ok(None) => return true,
                    Err(EngineError::Dead { .. }) => return false,
                    end => panic!("{end:?}"),
                }
            }
        });
    }
}
