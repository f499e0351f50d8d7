//! Quantising: from single precision to blocks of 32, as a file would hold them.
//!
//! Q8_0: d = max|x| / 127, what ggml writes. Q4_0: of several scales around the one that ggml writes
//! (the value of largest magnitude becomes code 0, that is -8), the one whose numbers lie nearest
//! to the given ones, by the sum of squares, and then the best scale for its codes.

use super::{Format, float};
use crate::level::{Kernel, Level};
use crate::simd::{LANES, Simd};

/// Values of a block.
const LEN: usize = 32;
/// Scales of Q4_0 that are tried: the largest value is taken for -8 less these.
const TRIALS: [f32; 7] = [0.0, -0.3, 0.3, -0.6, 0.6, -0.9, 0.9];

/// A format that weights can be quantised to at load.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Target {
    /// 4.5 bits a weight.
    Q4_0,
    /// 8.5 bits a weight.
    Q8_0,
}

impl Target {
    /// The format of the blocks.
    pub fn format(self) -> Format {
        match self {
            Target::Q4_0 => Format::Q4_0,
            Target::Q8_0 => Format::Q8_0,
        }
    }
}

/// Quantises whole blocks of finite numbers; `out` has room for their bytes.
pub(crate) fn quantise(level: Level, target: Target, values: &[f32], out: &mut [u8]) {
    level.run(Quantise { target, values, out });
}

struct Quantise<'a> {
    target: Target,
    values: &'a [f32],
    out: &'a mut [u8],
}

impl Kernel for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let blocks = self.values.as_chunks::<LEN>().0;
        for (x, out) in
            blocks.iter().zip(self.out.chunks_exact_mut(self.target.format().block_bytes()))
        {
            let x = Block::load(s, x);
            match self.target {
                Target::Q4_0 => x.q4_0(s, out),
                Target::Q8_0 => x.q8_0(s, out),
            }
        }
    }
}

/// A block in two vectors.
struct Block<S: Simd>([S::F; 2]);

impl<S: Simd> Block<S> {
    #[inline(always)]
    fn load(s: S, x: &[f32; LEN]) -> Self {
        let halves = x.as_chunks::<LANES>().0;
        Block([s.load(&halves[0]), s.load(&halves[1])])
    }

    /// The value of largest magnitude; of two the positive one.
    #[inline(always)]
    fn extreme(&self, s: S) -> f32 {
        let high = s.max_lane(s.max(self.0[0], self.0[1]));
        let low = -s.max_lane(s.sub(s.zero(), s.min(self.0[0], self.0[1])));
        if high >= -low { high } else { low }
    }

    /// x / d, rounded and kept within `low..=high`. All zero for d = 0.
    #[inline(always)]
    fn codes(&self, s: S, d: f32, low: f32, high: f32) -> [S::F; 2] {
        let factor = if d == 0.0 { 0.0 } else { 1.0 / d };
        let mut out = self.0;
        for x in &mut out {
            let rounded = s.round(s.mul(*x, s.splat(factor)));
            *x = s.min(s.max(rounded, s.splat(low)), s.splat(high));
        }
        out
    }

    /// The sum of products with `other`.
    #[inline(always)]
    fn dot(&self, s: S, other: &[S::F; 2]) -> f32 {
        s.sum(s.fma(self.0[0], other[0], s.mul(self.0[1], other[1])))
    }

    #[inline(always)]
    fn q8_0(&self, s: S, out: &mut [u8]) {
        let d = half::f16::from_f32(self.extreme(s).abs() / 127.0);
        let codes = self.codes(s, d.to_f32(), -127.0, 127.0);
        out[..2].copy_from_slice(&d.to_le_bytes());
        for (codes, out) in codes.into_iter().zip(out[2..].as_chunks_mut::<LANES>().0) {
            let mut bytes = [0; LANES];
            s.store_i8(s.to_i32(codes), &mut bytes);
            *out = bytes.map(|b| b as u8);
        }
    }

    #[inline(always)]
    fn q4_0(&self, s: S, out: &mut [u8]) {
        let (d, codes) = self.best(s);
        out[..2].copy_from_slice(&d.to_le_bytes());
        let (mut low, mut high) = ([0; LANES], [0; LANES]);
        s.store_i8(s.to_i32(s.add(codes[0], s.splat(8.0))), &mut low);
        s.store_i8(s.to_i32(s.add(codes[1], s.splat(8.0))), &mut high);
        for ((out, low), high) in out[2..].iter_mut().zip(low).zip(high) {
            *out = low as u8 | (high as u8) << 4;
        }
    }

    /// The best scale of the trials and its codes, from -8 to 7.
    #[inline(always)]
    fn best(&self, s: S) -> (half::f16, [S::F; 2]) {
        let extreme = self.extreme(s);
        let (mut best, mut least) = (half::f16::ZERO, f32::INFINITY);
        for trial in TRIALS {
            let codes = self.codes(s, extreme / (trial - 8.0), -8.0, 7.0);
            // Least squares: d = (x * q) / (q * q).
            let size = Block::<S>(codes).dot(s, &codes);
            let d = if size == 0.0 { 0.0 } else { self.dot(s, &codes) / size };
            let d = half::f16::from_f32(d);
            let scale = s.splat(-float(d.to_bits()));
            let codes = self.codes(s, d.to_f32(), -8.0, 7.0);
            let error = [s.fma(codes[0], scale, self.0[0]), s.fma(codes[1], scale, self.0[1])];
            let error = Block::<S>(error).dot(s, &error);
            if error < least {
                (best, least) = (d, error);
            }
        }
        (best, self.codes(s, best.to_f32(), -8.0, 7.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::dequantise;

    /// Numbers of a bell shape, with the scale of a trained model.
    fn values(blocks: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut uniform = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 16_777_216.0 - 0.5
        };
        (0..blocks * LEN).map(|_| 0.1 * (0..6).map(|_| uniform()).sum::<f32>()).collect()
    }

    fn bytes(level: Level, target: Target, x: &[f32]) -> Vec<u8> {
        let mut out = vec![0; x.len() / LEN * target.format().block_bytes()];
        quantise(level, target, x, &mut out);
        out
    }

    fn back(target: Target, x: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; x.len()];
        dequantise(target.format(), &bytes(Level::detect(), target, x), &mut out).unwrap();
        out
    }

    fn error(x: &[f32], y: &[f32]) -> f64 {
        x.iter().zip(y).map(|(x, y)| f64::from(x - y).powi(2)).sum()
    }

    #[test]
    fn every_level_writes_the_same_bytes() {
        let mut x = values(64, 1);
        x.extend([0.0; LEN]);
        x.extend([f32::MIN_POSITIVE; LEN]);
        x.extend([-6e4; LEN]);
        for target in [Target::Q4_0, Target::Q8_0] {
            let expected = bytes(Level::Scalar, target, &x);
            for level in Level::available() {
                assert_eq!(bytes(level, target, &x), expected, "{level} {target:?}");
            }
        }
    }

    #[test]
    fn eight_bits_are_within_half_a_step() {
        let x = values(64, 2);
        for (x, y) in x.chunks(LEN).zip(back(Target::Q8_0, &x).chunks(LEN)) {
            let largest = x.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
            // Half a step, and the rounding of the scale to half precision.
            let bound = largest / 254.0 + largest / 2048.0;
            assert!(x.iter().zip(y).all(|(x, y)| (x - y).abs() <= bound));
        }
    }

    #[test]
    fn four_bits_lie_nearer_than_with_the_scale_of_the_largest_value() {
        let x = values(256, 3);
        let plain: Vec<f32> = x
            .chunks(LEN)
            .flat_map(|x| {
                let extreme =
                    x.iter().fold(0.0, |m: f32, x| if x.abs() > m.abs() { *x } else { m });
                let d = half::f16::from_f32(extreme / -8.0).to_f32();
                x.iter().map(move |x| d * (x / d).round().clamp(-8.0, 7.0))
            })
            .collect();
        let (ours, plain) = (error(&x, &back(Target::Q4_0, &x)), error(&x, &plain));
        assert!(ours < 0.9 * plain, "{ours} {plain}");
    }

    #[test]
    fn numbers_of_the_format_come_back() {
        for target in [Target::Q4_0, Target::Q8_0] {
            let once = back(target, &values(64, 4));
            assert!(error(&once, &back(target, &once)) < 1e-9, "{target:?}");
        }
        assert_eq!(back(Target::Q4_0, &[0.0; LEN]), [0.0; LEN]);
    }
}
