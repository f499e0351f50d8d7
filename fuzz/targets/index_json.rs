#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    specdec_fuzz::index_json(bytes);
});
