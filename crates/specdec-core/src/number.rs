//! The numbers a law is written in: `f64` in production, exact rationals in the tests.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Sub};

/// An ordered field, as far as the verifiers need one.
///
/// Every verifier is generic over it, so that the code which ships is the code whose branches are
/// enumerated with rational arithmetic.
pub trait Number:
    Clone
    + Debug
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// The additive identity.
    fn zero() -> Self;
    /// The multiplicative identity.
    fn one() -> Self;
    /// Whether the value may stand in a law: neither NaN nor infinite.
    fn is_finite(&self) -> bool;
    /// The sum of all values, in an order fixed by their number alone.
    fn sum(values: &[Self]) -> Self;
}

impl Number for f64 {
    fn zero() -> Self {
        0.0
    }

    fn one() -> Self {
        1.0
    }

    fn is_finite(&self) -> bool {
        f64::is_finite(*self)
    }

    fn sum(values: &[Self]) -> Self {
        crate::math::sum(values)
    }
}
