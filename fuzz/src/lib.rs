//! What several targets need: a sound model around the file that is fuzzed.

use specdec_engine::load::{ChatTemplate, Gguf, ModelConfig, Specials, Tokenizer, gguf::Header};
use specdec_testkit::{gguf::TinyModel, hostile::folders};
use std::{
    path::Path,
    sync::{Arc, LazyLock},
};
use tempfile::TempDir;

/// The tokenizer of a sound model.
pub static TOKENIZER: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| {
    let file = TinyModel::llama().gguf().expect("a sound recipe").to_bytes();
    let header = Header::read(file.as_slice()).expect("a sound file");
    Arc::new(Tokenizer::from_gguf(&header).expect("a sound tokenizer"))
});

/// A folder of transformers whose other files are sound.
static HOME: LazyLock<TempDir> = LazyLock::new(|| {
    let home = tempfile::tempdir().expect("a folder");
    for (name, bytes) in &folders()[0].files {
        std::fs::write(home.path().join(name), bytes).expect("a file");
    }
    home
});

/// Reads all of a model that is read before its weights.
fn open(path: &Path) {
    let Ok(file) = Gguf::open(path) else { return };
    let _ = ModelConfig::from_gguf(file.header());
    if let Ok(tokenizer) = Tokenizer::from_gguf(file.header()) {
        let _ = tokenizer.encode("Hello <|im_end|> wörld", Specials::Parse, true);
        let _ = ChatTemplate::from_gguf(file.header(), Arc::new(tokenizer));
    }
}

/// Opens a folder in which one file is `bytes`.
pub fn folder_with(file: &str, bytes: &[u8]) {
    std::fs::write(HOME.path().join(file), bytes).expect("a file");
    open(HOME.path());
}
