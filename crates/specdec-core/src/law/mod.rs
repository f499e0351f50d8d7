//! From a row of logits to the law of the next token: one definition for plain decoding, drafting
//! and verification.

mod cut;
mod distribution;
mod logprobs;
mod processors;

pub use distribution::Law;
pub use logprobs::{TokenLogprobs, logprobs};
pub use processors::{Sampling, law};
