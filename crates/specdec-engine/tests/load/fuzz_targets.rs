//! The fuzz targets over what the fuzzer begins with: they belong to another workspace, and must not
//! fall behind this one.

use specdec_testkit::hostile::corpus;
use std::{fs, path::Path, thread};

#[path = "../../../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "a library, seen from the fuzz targets")]
mod fuzz;

type Target = fn(&[u8]) -> bool;
const TARGETS: [(&str, Target); 7] = [
    ("config_json", fuzz::config_json),
    ("gguf", fuzz::gguf),
    ("index_json", fuzz::index_json),
    ("safetensors", fuzz::safetensors),
    ("template", fuzz::template),
    ("text", fuzz::text),
    ("tokenizer_json", fuzz::tokenizer_json),
];

#[test]
fn every_target_takes_its_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/targets");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> =
        files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    files.sort();
    assert_eq!(files, TARGETS.map(|(name, _)| name));
    let mut corpus = corpus().unwrap();
    thread::scope(|scope| {
        for (name, target) in TARGETS {
            let inputs = corpus.remove(name).unwrap();
            assert!(inputs.len() >= 3, "{name}");
            scope.spawn(move || {
                let sound: Vec<bool> = inputs.iter().map(|bytes| target(bytes)).collect();
                assert!(sound[0], "{name} does not begin with what is sound");
            });
        }
    });
    assert!(corpus.is_empty(), "{:?} have no target", corpus.keys());
}
