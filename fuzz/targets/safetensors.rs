//! `model.safetensors` of a folder.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| specdec_fuzz::folder_with("model.safetensors", bytes));
