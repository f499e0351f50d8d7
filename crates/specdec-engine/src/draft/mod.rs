//! Drafters with tensors, and several drafters as one.

mod grow;
mod merge;
mod model;
mod vocabulary;

pub use merge::Merged;
pub use model::{ModelDrafter, ModelDrafterSizes};
pub use vocabulary::check_vocabulary;
