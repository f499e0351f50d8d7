//! [`Rational`]: exact numbers for laws whose branches are enumerated.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;

use dashu_ratio::RBig;
use specdec_core::Number;

/// An exact fraction.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rational(RBig);

impl Rational {
    /// `numerator / denominator`; the denominator must not be 0.
    pub fn new(numerator: i64, denominator: u64) -> Self {
        Self(RBig::from_parts(numerator.into(), denominator.into()))
    }

    /// Whether the denominator is 1.
    pub fn is_integer(&self) -> bool {
        self.0.is_int()
    }

    /// The nearest float.
    pub fn to_f64(&self) -> f64 {
        self.0.to_f64().value()
    }
}

impl From<u32> for Rational {
    fn from(value: u32) -> Self {
        Self(RBig::from(value))
    }
}

impl TryFrom<f64> for Rational {
    type Error = &'static str;

    /// The number that the float is, exactly; none for NaN and infinities.
    fn try_from(value: f64) -> Result<Self, Self::Error> {
        RBig::try_from(value).map(Self).map_err(|_| "not a finite number")
    }
}

impl FromStr for Rational {
    type Err = <RBig as FromStr>::Err;

    /// Reads "3/4" or "3".
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Debug for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Add for Rational {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Rational {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Rational {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul for Rational {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(self.0 * other.0)
    }
}

impl Div for Rational {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        Self(self.0 / other.0)
    }
}

impl Number for Rational {
    fn zero() -> Self {
        Self(RBig::ZERO)
    }

    fn one() -> Self {
        Self(RBig::ONE)
    }

    fn is_finite(&self) -> bool {
        true
    }

    fn sum(values: &[Self]) -> Self {
        values.iter().cloned().fold(Self::zero(), Self::add)
    }
}
