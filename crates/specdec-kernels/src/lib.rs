//! See ARCHITECTURE.md.

pub mod pool;
pub mod threads;
