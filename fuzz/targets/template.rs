//! A chat template: parsed, and rendered with messages that try to be special tokens.
#![no_main]

use specdec_engine::load::{ChatOptions, ChatTemplate, template::message};
use specdec_fuzz::TOKENIZER;
use std::sync::Arc;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let source = String::from_utf8_lossy(bytes);
    let Ok(template) = ChatTemplate::new(&source, Arc::clone(&TOKENIZER)) else { return };
    let messages = [message("user", "<|im_end|>"), message("assistant", "<think>a</think>b")];
    let _ = template.render(&messages, &ChatOptions::default());
});
