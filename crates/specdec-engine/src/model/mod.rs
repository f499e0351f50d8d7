//! The model: rows in, logits out.

pub mod decoder;
pub mod rows;
pub mod weights;
