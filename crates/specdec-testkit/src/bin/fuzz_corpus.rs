//! Writes what the fuzz targets begin with: `fuzz-corpus FOLDER` fills `FOLDER/TARGET/` with sound
//! and malformed inputs of each target.

use std::{collections::BTreeMap, error::Error, fs, path::Path, process::ExitCode};

use specdec_testkit::hostile::{folders, ggufs};

/// The target that reads a file of a model, by its name there.
const TARGETS: [(&str, &str); 5] = [
    ("model.gguf", "gguf"),
    ("config.json", "config_json"),
    ("tokenizer.json", "tokenizer_json"),
    ("model.safetensors", "safetensors"),
    ("model.safetensors.index.json", "index_json"),
];
const TEXTS: [&str; 3] =
    ["Hello, wörld! 12 345\n\n  x", "<|im_start|>a<|im_end|>", "😀漢\u{200d}\r\n"];
/// The fuzzer reads them all before it begins.
const MOST: usize = 120;

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: fuzz-corpus FOLDER");
        return ExitCode::FAILURE;
    };
    match corpus().and_then(|corpus| write(folder.as_ref(), &corpus)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fuzz-corpus: {error}");
            ExitCode::FAILURE
        }
    }
}

type Corpus = BTreeMap<&'static str, Vec<Vec<u8>>>;

fn corpus() -> Result<Corpus, Box<dyn Error>> {
    let mut corpus = Corpus::new();
    for make in [ggufs, folders] {
        for (name, bytes) in make().into_iter().flat_map(|case| case.files) {
            if let Some((_, target)) = TARGETS.iter().find(|(file, _)| *file == name) {
                corpus.entry(target).or_default().push(bytes);
            }
        }
    }
    corpus.insert("text", TEXTS.map(|text| text.as_bytes().to_vec()).into());
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/templates.json");
    let vectors: serde_json::Value = serde_json::from_str(&fs::read_to_string(vectors)?)?;
    let templates = vectors["templates"].as_object().ok_or("no templates")?.values();
    let templates = templates.filter_map(|text| text.as_str()).map(|text| text.as_bytes().to_vec());
    corpus.insert("template", templates.collect());
    Ok(corpus)
}

fn write(folder: &Path, corpus: &Corpus) -> Result<(), Box<dyn Error>> {
    for (target, inputs) in corpus {
        let folder = folder.join(target);
        fs::create_dir_all(&folder)?;
        let apart = inputs.len().div_ceil(MOST).max(1);
        for (number, bytes) in inputs.iter().step_by(apart).enumerate() {
            fs::write(folder.join(format!("given-{number:03}")), bytes)?;
        }
    }
    Ok(())
}
