//! CPU kernels: products of quantised matrices with several rows at once, the float operations of
//! a transformer, and the thread pool that runs them.
//!
//! The law of this crate: every output element is computed with the same operations in the same
//! order whatever the number of rows, the number of threads, the tiling and the instruction
//! [`Level`]. Tests compare bits.
//!
//! All unsafe code of the workspace lives here, behind safe functions.

mod activation;
mod acts;
mod attention;
mod cpu;
mod disjoint;
mod format;
mod kv;
mod layout;
mod level;
mod linear;
mod math;
mod matrix;
mod memory;
mod norm;
mod pool;
pub mod probe;
mod rope;
mod row_ops;
mod simd;
#[cfg(test)]
mod testing;
mod threads;

pub use activation::{geglu, swiglu};
pub use acts::{Acts, Forms};
pub use attention::{Partials, Span, attention};
pub use cpu::{Cpu, CpuError};
pub use format::{Activation, Format, Target, dequantise};
pub use kv::{KvError, KvStore, KvType, PAGE};
pub use level::{Level, UnknownLevel};
pub use linear::{Product, Store, linear};
pub use matrix::{Matrix, MatrixError};
pub use norm::{rms_norm, rms_norm_heads};
pub use pool::{Pool, PoolError};
pub use rope::{Rope, RopeKind, rope_append};
pub use row_ops::SimdRows;
pub use threads::available_threads;
