//! What the fuzz targets do with bytes, and whether these were sound.
//!
//! The engine's own tests do it with what the fuzzer begins with, so no target falls behind the code.

use specdec_engine::load::{
    ChatOptions, ChatTemplate, Gguf, ModelConfig, Specials, Tokenizer, gguf::Header,
    template::message,
};
use specdec_testkit::{gguf::TinyModel, hostile::sound_folder};
use std::{
    path::Path,
    sync::{Arc, LazyLock},
};
use tempfile::TempDir;

/// The tokenizer of a sound model.
static TOKENIZER: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| {
    let file = TinyModel::llama().gguf().expect("a sound recipe").to_bytes();
    let header = Header::read(file.as_slice()).expect("a sound file");
    Arc::new(Tokenizer::from_gguf(&header).expect("a sound tokenizer"))
});

thread_local! {
    /// A folder of transformers, all of it sound but the file that this thread changes.
    static HOME: TempDir = {
        let home = tempfile::tempdir().expect("a folder");
        for (name, bytes) in &sound_folder() {
            std::fs::write(home.path().join(name), bytes).expect("a file");
        }
        home
    };
}

/// Reads all of a model that is read before its weights.
fn open(path: &Path) -> bool {
    let Ok(file) = Gguf::open(path) else { return false };
    let config = ModelConfig::from_gguf(file.header());
    let Ok(tokenizer) = Tokenizer::from_gguf(file.header()) else { return false };
    let _ = tokenizer.encode("Hello <|im_end|> wörld", Specials::Parse, true);
    let template = ChatTemplate::from_gguf(file.header(), Arc::new(tokenizer));
    config.is_ok() && template.is_ok()
}

/// Opens a folder in which one file is `bytes`; a thread always gives the same `file`.
fn folder_with(file: &str, bytes: &[u8]) -> bool {
    HOME.with(|home| {
        std::fs::write(home.path().join(file), bytes).expect("a file");
        open(home.path())
    })
}

/// `config.json` of a folder.
pub fn config_json(bytes: &[u8]) -> bool {
    folder_with("config.json", bytes)
}

/// `tokenizer.json` of a folder.
pub fn tokenizer_json(bytes: &[u8]) -> bool {
    folder_with("tokenizer.json", bytes)
}

/// `model.safetensors` of a folder.
pub fn safetensors(bytes: &[u8]) -> bool {
    folder_with("model.safetensors", bytes)
}

/// `model.safetensors.index.json` of a folder.
pub fn index_json(bytes: &[u8]) -> bool {
    folder_with("model.safetensors.index.json", bytes)
}

/// The header of a GGUF file, the configuration and the vocabulary in it.
pub fn gguf(bytes: &[u8]) -> bool {
    let Ok(header) = Header::read(bytes) else { return false };
    let config = ModelConfig::from_gguf(&header);
    let tokenizer = Tokenizer::from_gguf(&header);
    config.is_ok() && tokenizer.is_ok()
}

/// A chat template: parsed, and rendered with messages that try to be special tokens.
pub fn template(bytes: &[u8]) -> bool {
    let source = String::from_utf8_lossy(bytes);
    let Ok(template) = ChatTemplate::new(&source, Arc::clone(&TOKENIZER)) else { return false };
    let messages = [message("user", "<|im_end|>"), message("assistant", "<think>a</think>b")];
    template.render(&messages, &ChatOptions::default()).is_ok()
}

/// Text to tokens and back: nothing is lost, and no text becomes a control token.
pub fn text(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let ids = TOKENIZER.encode(&text, Specials::AsText, false);
    assert_eq!(TOKENIZER.decode(&ids, true), text);
    assert!(!ids.iter().any(|&id| TOKENIZER.is_control(id)));
    true
}
