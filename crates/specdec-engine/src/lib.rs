//! See ARCHITECTURE.md.

pub mod load;
