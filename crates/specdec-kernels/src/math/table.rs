//! Scalar f64 functions for tables that are made once (rope angles).
//!
//! Only +, -, x, / and fused multiply-add, each correctly rounded wherever it runs, so a table is
//! the same bits on every machine; the system's libm is not. Taylor series throughout: arguments
//! are reduced until the first term left out is below half an ulp.

use std::f64::consts::{FRAC_PI_2, LN_2, SQRT_2};

/// What `LN_2` and `FRAC_PI_2` leave of ln 2 and pi / 2.
const LN_2_LOW: f64 = 2.319_046_813_846_299_6e-17;
const FRAC_PI_2_LOW: f64 = 6.123_233_995_736_766e-17;

/// Sine and cosine of `x` radians, |x| < 2^32, to 4e-16.
pub(crate) fn sin_cos(x: f64) -> (f64, f64) {
    let k = (x / FRAC_PI_2).round_ties_even();
    // The first step is exact: a multiple of 2^-52 below 1.
    let r = k.mul_add(-FRAC_PI_2_LOW, k.mul_add(-FRAC_PI_2, x));
    let (sin, cos) = (r - r * alternating(&SIN, r * r), 1.0 - alternating(&COS, r * r));
    match (k as i64).rem_euclid(4) {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// Ratios of successive terms of the sine, x^3 / 3! and on: with |r| <= pi / 4, r^19 / 19! < 1e-19.
const SIN: [f64; 8] = ratios(3.0);
/// Of the cosine, x^2 / 2! and on: r^18 / 18! < 3e-18.
const COS: [f64; 8] = ratios(2.0);

/// 1 / (n (n - 1)) for n = first, first + 2, ...
const fn ratios(first: f64) -> [f64; 8] {
    let (mut ratios, mut n, mut i) = ([0.0; 8], first, 0);
    while i < ratios.len() {
        ratios[i] = 1.0 / (n * (n - 1.0));
        n += 2.0;
        i += 1;
    }
    ratios
}

/// a y - a b y^2 + a b c y^3 - ...
fn alternating(ratios: &[f64; 8], y: f64) -> f64 {
    ratios.iter().rev().fold(0.0, |sum, ratio| (1.0 - sum) * (ratio * y))
}

/// x to the power y, for x > 0 and normal, where the result is normal, to (2 + |y ln x|) 2^-52
/// relative.
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    exp(y * ln(x))
}

/// e^x, |x| <= 708.
fn exp(x: f64) -> f64 {
    let k = (x / LN_2).round_ties_even();
    let r = k.mul_add(-LN_2_LOW, k.mul_add(-LN_2, x));
    // |r| <= 0.347: r^15 / 15! < 2e-19.
    let series = (1..15).rev().fold(1.0, |sum, n| 1.0 + sum * (r / f64::from(n)));
    series * power_of_two(k as i64)
}

/// 2^k, normal.
fn power_of_two(k: i64) -> f64 {
    f64::from_bits(((1023 + k) as u64) << 52)
}

/// Natural logarithm of a normal x > 0.
fn ln(x: f64) -> f64 {
    let mut k = (x.to_bits() >> 52) as i64 - 1023;
    let mut m = x * power_of_two(-k);
    if m > SQRT_2 {
        m *= 0.5;
        k += 1;
    }
    // ln m = 2 atanh s; |s| <= 0.1716: s^23 / 23 < 2e-19.
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let series = (0..11).rev().fold(0.0, |sum, n| sum * s2 + 1.0 / f64::from(2 * n + 1));
    (k as f64).mul_add(LN_2, 2.0 * s * series)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// libm is good to an ulp; a table needs f32.
    fn close(ours: f64, theirs: f64, bound: f64, what: &str, x: f64) {
        assert!((ours - theirs).abs() <= bound, "{what} {x}: {ours} for {theirs}");
    }

    #[test]
    fn sines_and_cosines_of_every_position_a_context_may_have() {
        let whole = (0..200_000).map(f64::from);
        let parts = (0..200_000).map(|i| f64::from(i) * 1.234_567e-3);
        let large = (1..30).map(|i| f64::from(u32::MAX) / f64::from(i));
        let quarters = (0..1000).map(|i| f64::from(i) * FRAC_PI_2);
        for x in whole.chain(parts).chain(large).chain(quarters) {
            let (sin, cos) = sin_cos(x);
            close(sin, x.sin(), 4e-16, "sin", x);
            close(cos, x.cos(), 4e-16, "cos", x);
        }
        assert_eq!(sin_cos(0.0), (0.0, 1.0));
    }

    #[test]
    fn powers_of_the_bases_that_models_use() {
        for base in [2.0_f64, 1e4, 1e5, 5e5, 1e6, 1e8] {
            for i in 0..=512 {
                let y = -f64::from(i) / 256.0;
                let exact = base.powf(y);
                let bound = exact * (4.0 + (y * base.ln()).abs()) * f64::EPSILON;
                close(pow(base, y), exact, bound, "pow", y);
            }
            assert_eq!(pow(base, 0.0).to_bits(), 1.0_f64.to_bits());
        }
    }
}
