//! CPU kernels: products of quantised matrices with several rows at once, the float operations of
//! a transformer, and the thread pool that runs them.
//!
//! The law of this crate: every output element is computed with the same operations in the same
//! order whatever the number of rows, the number of threads, the tiling and the instruction
//! [`Level`]. Tests compare bits.
//!
//! All unsafe code of the workspace lives here, behind safe functions.

mod acts;
mod buffer;
mod cpu;
mod disjoint;
mod format;
mod layout;
mod level;
mod linear;
#[allow(dead_code, unused_imports, reason = "the kernels that need it land next")]
mod math;
mod matrix;
mod pool;
#[allow(dead_code, reason = "the kernels that need each operation land one by one")]
mod simd;
mod threads;

pub use acts::{Acts, Forms};
pub use cpu::{Cpu, CpuError};
pub use format::{Activation, Format, dequantise};
pub use level::{Level, UnknownLevel};
pub use linear::{Product, Store, linear};
pub use matrix::{Matrix, MatrixError};
pub use pool::{Pool, PoolError};
pub use threads::available_threads;
