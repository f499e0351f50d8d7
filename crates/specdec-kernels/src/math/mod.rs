//! Transcendental functions with fixed operations: the same bits on every machine and level.

pub(crate) mod table;
mod vector;

pub(crate) use vector::{exp, sigmoid_mul};
