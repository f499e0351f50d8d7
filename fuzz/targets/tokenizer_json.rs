//! `tokenizer.json` of a folder.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| specdec_fuzz::folder_with("tokenizer.json", bytes));
