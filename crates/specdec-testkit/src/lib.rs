//! Test support for specdec-rs, never published. See ARCHITECTURE.md.

pub mod chi_square;
pub mod drafts;
pub mod enumerate;
pub mod folder;
pub mod gguf;
pub mod grid;
pub mod hostile;
pub mod ledger;
pub mod rational;
pub mod rounds;
pub mod scripted;
pub mod stateful;
pub mod toy;
