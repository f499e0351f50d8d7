//! Whole engines, asked from outside.

use specdec_core::FinishReason;
use specdec_engine::{Engine, EngineOptions, Event, RequestHandle};
use specdec_testkit::gguf::TinyModel;
use std::time::Duration;

/// A hang is an error: everything that is waited for takes moments.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A tiny model's engine.
pub fn load(model: &TinyModel, adjust: impl FnOnce(&mut EngineOptions)) -> Engine {
    let file = model.temp_file();
    let mut options = EngineOptions::new(&file);
    options.num_threads = Some(1);
    adjust(&mut options);
    Engine::load(&options, &mut |_, _| ()).unwrap()
}

/// All that a request said.
#[derive(Debug, PartialEq)]
pub struct Said {
    pub tokens: Vec<u32>,
    pub text: String,
    pub reason: FinishReason,
}

/// Waits for the end of a request.
pub fn finish(handle: &RequestHandle) -> Said {
    let (mut tokens, mut text) = (Vec::new(), String::new());
    loop {
        let (chunk, end) = match handle.recv_timeout(PATIENCE).unwrap() {
            Some(Event::Chunk(chunk)) => (chunk, None),
            Some(Event::Done(chunk, end)) => (chunk, Some(end.finish.reason)),
            other => panic!("{other:?}"),
        };
        tokens.extend(chunk.token_ids);
        text += &chunk.text;
        if let Some(reason) = end {
            return Said { tokens, text, reason };
        }
    }
}
