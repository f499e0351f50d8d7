//! The header of a GGUF file, the configuration and the vocabulary in it.
#![no_main]

use specdec_engine::load::{ModelConfig, Tokenizer, gguf::Header};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(header) = Header::read(bytes) else { return };
    let _ = ModelConfig::from_gguf(&header);
    let _ = Tokenizer::from_gguf(&header);
});
