//! Elementary functions made of fixed IEEE operations, so that they give the same bits on every
//! machine: no libm, no fused multiply-add, no rounding mode but the default one.

use std::f64::consts::{LN_2, SQRT_2};

/// Number of virtual lanes of every reduction: what a 512-bit register of `f32` holds.
pub const LANES: usize = 16;

/// Below this, [`exp`] is 0: its last normal result is `exp(-87.33)`, and a denormal weight would
/// make the law depend on the thread's flush-to-zero flag.
const EXP_FLOOR: f32 = -87.3;

/// ln 2 in two parts; the first has 9 significant bits, so its product with a 7-bit exponent is
/// exact (Cody and Waite).
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// 1.5 * 2^23: adding and subtracting it rounds to the nearest integer, ties to even.
const ROUND: f32 = 12_582_912.0;

/// e^x for x <= 0, at most 2 units in the last place off; 0 below -87.3.
///
/// Branch-free up to the final selection, so that a loop over it becomes SIMD code.
#[inline]
pub fn exp(x: f32) -> f32 {
    let clamped = if x < EXP_FLOOR { EXP_FLOOR } else { x };
    let rounded = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (clamped - n * LN_2_HIGH) - n * LN_2_LOW;
    // Taylor series: |r| <= 0.35, so the first dropped term, r^8/8!, is under 6e-9.
    let mut tail = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5] {
        tail = tail * r + coefficient;
    }
    let mantissa = 1.0 + (r + r * r * tail);
    // Floats around ROUND are 1 apart, so their bits count n.
    let n_bits = rounded.to_bits().wrapping_sub(ROUND.to_bits());
    let scale = f32::from_bits(n_bits.wrapping_add(127) << 23);
    if x < EXP_FLOOR { 0.0 } else { mantissa * scale }
}

/// ln x for finite, normal x > 0, at most 2 units in the last place off (absolute 2^-53 near 1).
#[inline]
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) as i64 - 1023) as f64;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > SQRT_2 {
        mantissa *= 0.5;
        exponent += 1.0;
    }
    // ln m = 2 artanh s, |s| <= 0.1716: the first dropped term, s^24/25, is under 2e-20.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut tail = 0.0;
    for odd in [23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        tail = (tail + 1.0 / odd) * square;
    }
    exponent * LN_2 + 2.0 * (s + s * tail)
}

/// The sum over 16 virtual lanes: element i goes to lane i mod 16, then the lanes are added as a
/// fixed tree (i with i + 8, then + 4, + 2, + 1). The same bits at every SIMD width.
pub fn sum(values: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for chunk in values.chunks(LANES) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    fold(lanes)
}

/// Adds 16 lanes as a fixed binary tree.
pub fn fold(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}
