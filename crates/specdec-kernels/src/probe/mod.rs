//! What the machine can do at most: the two numbers that every time of a kernel is held against.
//!
//! A pass that reads `bytes` of weights and multiplies `macs` of them takes at least
//! `max(bytes / B, macs / R)`, with the read bandwidth B of [`Reading`] and the rate R of
//! [`Multiplying`]. Both move with the machine's mood, so they are measured in the same run as what
//! is held against them, in turns with it. The caller has the clock.

mod multiply;
mod read;

pub use multiply::Multiplying;
pub use read::Reading;
