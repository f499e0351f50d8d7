//! Test support for specdec-rs, never published. See ARCHITECTURE.md.

pub mod gguf;
