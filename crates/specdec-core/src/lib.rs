//! Exact speculative decoding: the law, the draft tree and the verifiers. No tensors, no I/O, no
//! clock, no global state.
//!
//! ```text
//! draft    Drafter::propose    contexts         -> DraftTrees
//! law      Processors::law     row of logits    -> Law, at each place the walk visits
//! verify   Method::verify      tree, laws, key  -> Outcome: accepted path and the next token
//! accept   Acceptor::accept    token by token   -> text to stream, or the end
//! stats    SpecStats::record   step by step     -> acceptance
//! ```
//!
//! A plain step is the same with an empty tree.
//!
//! ```
//! use specdec_core::rng::Key;
//! use specdec_core::{Ask, Budget, DraftTree, Drafter, History, Law, LawError, Laws, Method, Ngram};
//! use specdec_core::{Processors, Rule, Sampling};
//!
//! // A target that always counts up by one, modulo 4.
//! struct Counting { context: u32, tokens: Vec<u32>, law: Option<Law> }
//! impl Laws for Counting {
//!     fn at(&mut self, node: Option<usize>) -> Result<&Law, LawError> {
//!         let last = node.map_or(self.context, |node| self.tokens[node]);
//!         Ok(self.law.insert(Law::one_hot((last + 1) % 4)))
//!     }
//! }
//!
//! let context = [0, 1, 2, 3, 0, 1];
//! let key = Key { seed: 0, sample: 0 };
//! let (processors, history) = (Processors::new(&Sampling::greedy(), 4)?, History::new(&context));
//! let rule = Rule { processors: &processors, history: &history, method: Method::Greedy, key };
//! let budget = Budget { nodes: 3, depth: 3 };
//! let mut asks = [Ask {
//!     id: 0, context: &context, budget, prediction: &[], rule, tree: DraftTree::new(),
//! }];
//! Ngram::new(1, 3, 1)?.propose(&mut asks)?;
//! let tree = &asks[0].tree;
//! let tokens = (0..tree.len()).map(|node| tree.token(node)).collect();
//! let mut laws = Counting { context: 1, tokens, law: None };
//! let outcome = Method::Greedy.verify(tree, &mut laws, context.len(), key)?;
//! assert_eq!(outcome.path, [0, 1, 2]); // 2, 3, 0 were proposed and accepted,
//! assert_eq!(outcome.next, 1); // and the step pays for one token more.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(clippy::float_cmp, reason = "thresholds and laws are compared bit for bit, on purpose")]

pub mod accept;
pub mod bounds;
pub mod chances;
pub mod draft;
mod error;
pub mod law;
pub mod math;
mod number;
pub mod primitives;
pub mod rng;
pub mod row_ops;
pub mod stats;
pub mod tree;
pub mod verify;

pub use accept::{Acceptor, Finish, FinishReason, Limits, Stop};
pub use draft::{Ask, Budget, DraftError, Drafter, Ngram, Rule};
pub use error::{LawError, ParameterError, TreeError};
pub use law::{History, Law, Prefix, Processors, Sampling, Scratch, TokenLogprobs, logprobs};
pub use number::Number;
pub use row_ops::RowOps;
pub use stats::{SpecStats, Step, StepEnd};
pub use tree::{DraftTree, Origin};
pub use verify::{Laws, Method, Outcome, Walk};

/// Index of a token in the vocabulary.
pub type TokenId = u32;
