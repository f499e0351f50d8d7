//! From a row of logits to the law of the next token: one definition for plain decoding, drafting
//! and verification.
//!
//! [`Sampling`] (what was asked for) becomes [`Processors`] (checked, once per request). Each answer
//! has a [`History`], which grows by accepted tokens; a drafted path is laid over it for one
//! look: `processors.law(row, history.then(&path), ..)`.

mod cut;
mod distribution;
mod edits;
mod history;
mod logprobs;
mod processors;
mod sampling;

pub use distribution::Law;
pub use history::{History, Prefix};
pub use logprobs::{TokenLogprobs, logprobs};
pub use processors::{Processors, Scratch};
pub use sampling::Sampling;
