//! From a model file to checked values: header, configuration, tokenizer, chat template.
//!
//! Everything in a file is hostile until it has been checked: [`gguf`] proves every size against
//! the file before anything is allocated, [`config`] proves that the tensors are those the
//! architecture asks for before any of them is read, [`tokenizer`] and [`template`] keep the text
//! of messages from ever becoming a special token.

pub mod config;
mod error;
mod folder;
pub mod gguf;
pub mod template;
pub mod tokenizer;

pub use config::ModelConfig;
pub use error::LoadError;
pub use gguf::Gguf;
pub use template::{ChatOptions, ChatPrompt, ChatTemplate, TemplateError};
pub use tokenizer::{Specials, TextDecoder, Tokenizer};
