//! Mutated inputs for every parser, as long as `SPECDEC_FUZZ_SECONDS` says (`make fuzz`: 60 each).
//!
//! A plain mutator over a corpus of sound and malformed files: it needs no other toolchain, and what
//! it finds is a panic, an abort or a hang. The input in hand stands in `target/fuzz/`, so that one
//! which ends the process can be looked at.

use specdec_engine::load::{
    ChatOptions, ChatTemplate, Gguf, ModelConfig, Specials, Tokenizer, gguf::Header,
    template::message,
};
use specdec_testkit::{
    gguf::{Noise, TinyModel},
    hostile::{Hostile, folders, ggufs},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// Numbers that sit at the edges of what a field holds.
const EDGES: [u64; 10] =
    [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];

/// A stream of random numbers.
struct Dice {
    noise: Noise,
    next: u64,
}

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.next += 1;
        self.noise.below(self.next, n.max(1) as u32) as usize
    }

    fn mutated(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let which = self.below(corpus.len());
        let mut bytes = corpus[which].clone();
        for _ in 0..=self.below(6) {
            self.mutate(&mut bytes, corpus);
        }
        bytes
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(bytes.len());
        let len = (1 + self.below(16)).min(bytes.len() - at);
        match self.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
            1 if !bytes.is_empty() => bytes[at] = self.below(256) as u8,
            2 => drop(bytes.drain(at..at + len)),
            3 => {
                let copy = bytes[at..at + len].to_vec();
                let to = self.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            4 => bytes.truncate(at),
            5 => {
                let edge = EDGES[self.below(EDGES.len())].to_le_bytes();
                let len = [1, 2, 4, 8][self.below(4)].min(bytes.len() - at);
                bytes[at..at + len].copy_from_slice(&edge[..len]);
            }
            _ => {
                let which = self.below(corpus.len());
                let other = &corpus[which];
                let from = self.below(other.len());
                let end = (from + 1 + self.below(64)).min(other.len());
                bytes.splice(at..at, other[from.min(end)..end].iter().copied());
            }
        }
    }
}

/// Where the inputs of this run lie.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Feeds mutated inputs of `corpus` to `target` until the time is over.
fn fuzz(name: &str, corpus: &[Vec<u8>], target: impl Fn(&[u8])) {
    let seconds = std::env::var("SPECDEC_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(1));
    let seed = std::env::var("SPECDEC_FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut dice = Dice { noise: Noise::new(seed, name), next: 0 };
    let input = folder().join(format!("{name}.input"));
    let mut runs = 0;
    while Instant::now() < end {
        let bytes = dice.mutated(corpus);
        std::fs::write(&input, &bytes).unwrap();
        target(&bytes);
        runs += 1;
    }
    println!("{name}: {runs} inputs");
}

fn bytes_of(cases: &[Hostile], file: &str) -> Vec<Vec<u8>> {
    let files = cases.iter().flat_map(|case| &case.files);
    files.filter(|(name, _)| name == file).map(|(_, bytes)| bytes.clone()).collect()
}

fn open(path: &Path) {
    let Ok(file) = Gguf::open(path) else { return };
    let _ = ModelConfig::from_gguf(file.header());
    if let Ok(tokenizer) = Tokenizer::from_gguf(file.header()) {
        let _ = tokenizer.encode("Hello <|im_end|> wörld", Specials::Parse, true);
        let _ = ChatTemplate::from_gguf(file.header(), Arc::new(tokenizer));
    }
}

#[test]
#[ignore = "make fuzz runs it"]
fn gguf() {
    let mut corpus = bytes_of(&ggufs(), "model.gguf");
    corpus.truncate(400);
    fuzz("gguf", &corpus, |bytes| {
        let Ok(header) = Header::read(bytes) else { return };
        let _ = ModelConfig::from_gguf(&header);
        let _ = Tokenizer::from_gguf(&header);
    });
}

/// One file of a folder is mutated, the others are sound.
fn fuzz_folder(file: &str) {
    let cases = folders();
    let mut corpus = bytes_of(&cases, file);
    corpus.truncate(200);
    let home = tempfile::tempdir().unwrap();
    for (name, bytes) in &cases[0].files {
        std::fs::write(home.path().join(name), bytes).unwrap();
    }
    fuzz(file, &corpus, |bytes| {
        std::fs::write(home.path().join(file), bytes).unwrap();
        open(home.path());
    });
}

#[test]
#[ignore = "make fuzz runs it"]
fn config_json() {
    fuzz_folder("config.json");
}

#[test]
#[ignore = "make fuzz runs it"]
fn tokenizer_json() {
    fuzz_folder("tokenizer.json");
}

#[test]
#[ignore = "make fuzz runs it"]
fn safetensors() {
    fuzz_folder("model.safetensors");
}

#[test]
#[ignore = "make fuzz runs it"]
fn index_json() {
    fuzz_folder("model.safetensors.index.json");
}

#[test]
#[ignore = "make fuzz runs it"]
fn text() {
    let file = TinyModel::llama().gguf().unwrap().to_bytes();
    let tokenizer = Tokenizer::from_gguf(&Header::read(file.as_slice()).unwrap()).unwrap();
    let corpus = ["Hello, wörld! 12 345\n\n  x", "<|im_start|>a<|im_end|>", "😀漢\u{200d}\r\n"];
    let corpus: Vec<Vec<u8>> = corpus.map(|text| text.as_bytes().to_vec()).into();
    fuzz("text", &corpus, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let ids = tokenizer.encode(&text, Specials::AsText, false);
        assert_eq!(tokenizer.decode(&ids, true), text);
        assert!(!ids.iter().any(|&id| tokenizer.is_control(id)));
    });
}

#[test]
#[ignore = "make fuzz runs it"]
fn template() {
    let file = TinyModel::llama().gguf().unwrap().to_bytes();
    let tokenizer = Tokenizer::from_gguf(&Header::read(file.as_slice()).unwrap()).unwrap();
    let tokenizer = Arc::new(tokenizer);
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/templates.json");
    let vectors: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(vectors).unwrap()).unwrap();
    let templates = vectors["templates"].as_object().unwrap().values();
    let corpus: Vec<Vec<u8>> =
        templates.map(|text| text.as_str().unwrap().as_bytes().to_vec()).collect();
    fuzz("template", &corpus, |bytes| {
        let source = String::from_utf8_lossy(bytes);
        let Ok(template) = ChatTemplate::new(&source, Arc::clone(&tokenizer)) else { return };
        let messages = [message("user", "<|im_end|>"), message("assistant", "<think>a</think>b")];
        let _ = template.render(&messages, &ChatOptions::default());
    });
}
