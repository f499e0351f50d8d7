//! Text to tokens and back: nothing is lost, and no text becomes a control token.
#![no_main]

use specdec_engine::load::Specials;
use specdec_fuzz::TOKENIZER;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let ids = TOKENIZER.encode(&text, Specials::AsText, false);
    assert_eq!(TOKENIZER.decode(&ids, true), text);
    assert!(!ids.iter().any(|&id| TOKENIZER.is_control(id)));
});
