//! Models and the loop of specdec-rs: one line from a prompt to a text.
//!
//! ```text
//! prompt   load/{tokenizer,template}        text -> token ids
//!   |
//! draft    specdec_core::draft, draft/      a cheap guess at what follows
//! tree     specdec_core::tree               guesses that share prefixes share rows
//! forward  model/decoder.rs, ops/, cache.rs one pass over all rows of all requests
//! verify   specdec_core::verify             accept a path, draw one more token
//! commit   sequence.rs, cache.rs            every token through one door, drafted or not
//! stream   load/tokenizer, engine/          tokens -> text -> caller
//! ```
//!
//! Read [`step`] first: it is the sentence that joins them.

pub mod cache;
pub mod draft;
pub mod engine;
pub mod error;
pub mod load;
pub mod measure;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod open;
pub mod ops;
mod prefix;
pub mod request;
pub mod scheduler;
pub mod sequence;
pub mod speculate;
pub mod step;

pub use engine::{Engine, Notifier, ReadyQueue, RequestHandle};
pub use error::EngineError;
pub use open::EngineOptions;
pub use request::{Chunk, Completion, Event, RequestMetrics, SamplingParams};
pub use speculate::{Source, Speculation};
