//! Malformed model files, each with the error that a loader must give: one thing is wrong with each.
//!
//! The error is named by the beginning of its debug form, such as `MissingKey { key: "x"`; of several
//! that would do, separated by `|`, one must come.

mod corpus;
mod folders;
mod ggufs;
mod large;

use crate::gguf::TinyModel;

pub use corpus::corpus;
pub use folders::{folders, sound_folder};
pub use ggufs::ggufs;
pub use large::large;

/// The smallest model of a family: there are a thousand of them.
fn small(model: TinyModel) -> TinyModel {
    let (hidden, heads, kv_heads, ffn) = (32, 2, 1, 32);
    TinyModel { layers: 2, hidden, heads, kv_heads, ffn, vocab: 260, ..model }
}

/// One malformed model: a file, or the files of a folder by name.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// What is wrong.
    pub name: String,
    /// Files; one called `model.gguf` stands for itself.
    pub files: Vec<(String, Vec<u8>)>,
    /// How the error begins.
    pub expected: String,
}

impl Hostile {
    /// Whether an outcome, in its debug form, is the one expected.
    pub fn is_met_by(&self, outcome: &str) -> bool {
        let error = outcome.strip_prefix("Err(");
        error.is_some_and(|error| self.expected.split('|').any(|known| error.starts_with(known)))
    }
}
