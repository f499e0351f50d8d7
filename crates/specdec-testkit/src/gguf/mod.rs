//! Tiny random models as GGUF files, written from a recipe and a seed.
//!
//! A recipe names every byte of its file, so a test vector stores the recipe and never the model.
//! What is written follows the layout and the key names of llama.cpp's converter, and nothing here
//! shares code with the readers under test.
//!
//! ```
//! use specdec_testkit::gguf::TinyModel;
//!
//! let model = TinyModel { layers: 2, tied: false, ..TinyModel::llama() };
//! let file = model.temp_file();
//! assert!(file.to_str().unwrap().ends_with(".gguf"));
//! ```

mod blocks;
mod case;
mod fault;
mod file;
mod format;
mod noise;
mod recipe;
mod tensors;
mod vocabulary;

pub use case::{Case, Greedy, Round, read_vectors};
pub use fault::{Fault, temp_file_of};
pub use file::{Gguf, Tensor, Value};
pub use format::Format;
pub use noise::Noise;
pub use recipe::{Arch, RecipeError, Role, RopeScaling, TinyModel};
pub use vocabulary::{BYTES, CHAT_TEMPLATE, SPECIALS, Vocabulary};
