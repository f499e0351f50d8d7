//! Root-mean-square norm (Zhang and Sennrich 2019, arXiv 1910.07467).

use crate::acts::{Acts, Row};
use crate::cpu::Cpu;
use crate::disjoint::Disjoint;
use crate::level::Kernel;
use crate::pool::PoolError;
use crate::simd::{LANES, Simd, prefetch_row};

/// `out[i] = x / sqrt(mean(x^2) + eps) * weight` for x = row `select[i]` of `x` (rows of
/// `weight.len()` values), then brings out's quantised forms up to date.
///
/// Squares are summed in 16 lanes, element i in lane i mod 16, and the lanes by the fixed tree.
///
/// # Errors
/// As [`crate::Pool::run`].
///
/// # Panics
/// If a row or width does not fit.
pub fn rms_norm(
    cpu: &Cpu,
    x: &[f32],
    select: &[u32],
    weight: &[f32],
    eps: f32,
    out: &mut Acts,
) -> Result<(), PoolError> {
    let dim = weight.len();
    assert_eq!(out.cols(), dim, "a norm of {dim} values into rows of {}", out.cols());
    let rows = out.split(select.len());
    cpu.pool.run(rows.tiles(), &|tile| {
        for i in rows.of_tile(tile) {
            let x = &x[select[i] as usize * dim..][..dim];
            // SAFETY: every tile takes its own rows.
            let out = unsafe { rows.row(i) };
            cpu.level.run(Norm { x, weight, eps, out });
        }
    })
}

/// The same for each head of queries or keys, in place: `x` is a row of heads of `weight.len()`
/// values after the other.
///
/// # Errors
/// As [`crate::Pool::run`].
///
/// # Panics
/// If `x` is no whole number of heads.
pub fn rms_norm_heads(cpu: &Cpu, x: &mut [f32], weight: &[f32], eps: f32) -> Result<(), PoolError> {
    let dim = weight.len();
    assert!(
        dim > 0 && x.len().is_multiple_of(dim),
        "{} values are no whole heads of {dim}",
        x.len()
    );
    let heads = x.len() / dim;
    let x = Disjoint::new(x);
    cpu.pool.run(heads.div_ceil(HEADS), &|tile| {
        let range = tile * HEADS * dim..((tile + 1) * HEADS).min(heads) * dim;
        // SAFETY: tiles do not overlap.
        let x = unsafe { x.part(range) };
        cpu.level.run(NormHeads { x, weight, eps });
    })
}

/// Heads in a tile: a few microseconds of work.
const HEADS: usize = 32;

struct Norm<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    eps: f32,
    out: Row<'a>,
}

impl Kernel for Norm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        // The sum waits for its own additions, so it is what may wait for the values as well.
        let factor = factor(s, self.x, self.eps);
        self.out.values.copy_from_slice(self.x);
        scale(s, self.out.values, self.weight, factor);
        self.out.quantise(s);
    }
}

struct NormHeads<'a> {
    x: &'a mut [f32],
    weight: &'a [f32],
    eps: f32,
}

impl Kernel for NormHeads<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for head in self.x.chunks_exact_mut(self.weight.len()) {
            let factor = factor(s, head, self.eps);
            scale(s, head, self.weight, factor);
        }
    }
}

/// 1 / sqrt(mean(x^2) + eps).
#[inline(always)]
fn factor<S: Simd>(s: S, x: &[f32], eps: f32) -> f32 {
    let mean = sum_of_squares(s, x) / x.len() as f32;
    1.0 / (mean + eps).sqrt()
}

/// x times the factor times the weight.
#[inline(always)]
fn scale<S: Simd>(s: S, x: &mut [f32], weight: &[f32], factor: f32) {
    let factor = s.splat(factor);
    let (blocks, tail) = x.as_chunks_mut::<LANES>();
    let (weights, weight_tail) = weight.as_chunks::<LANES>();
    for (x, w) in blocks.iter_mut().zip(weights) {
        s.store(s.mul(s.mul(s.load(x), factor), s.load(w)), x);
    }
    let last = s.mul(s.mul(s.load_tail(tail), factor), s.load_tail(weight_tail));
    s.store_tail(last, tail);
}

#[inline(always)]
fn sum_of_squares<S: Simd>(s: S, x: &[f32]) -> f32 {
    let (blocks, tail) = x.as_chunks::<LANES>();
    let mut sum = s.zero();
    for x in blocks {
        prefetch_row(x);
        let x = s.load(x);
        sum = s.fma(x, x, sum);
    }
    let x = s.load_tail(tail);
    s.sum(s.fma(x, x, sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acts::Forms;
    use crate::testing::{Noise, bits, cpus};

    const EPS: f32 = 1e-6;

    fn norm(cpu: &Cpu, x: &[f32], select: &[u32], weight: &[f32]) -> Acts {
        let mut out =
            Acts::new(select.len(), weight.len(), Forms { int8x32: true, int8x256: true });
        rms_norm(cpu, x, select, weight, EPS, &mut out).unwrap();
        out
    }

    #[test]
    fn a_row_has_the_same_bits_in_any_company() {
        let mut noise = Noise(1);
        for dim in [16, 64, 80, 100, 576, 1536] {
            let (x, weight) = (noise.floats(7 * dim), noise.floats(dim));
            let select = [6, 0, 3, 3, 1];
            let mut first = None;
            for cpu in cpus() {
                let out = norm(&cpu, &x, &select, &weight);
                for (i, row) in select.iter().enumerate() {
                    let alone = norm(&cpu, &x, &[*row], &weight);
                    assert_eq!(bits(out.row(i)), bits(alone.row(0)), "{dim} {}", cpu.level);
                }
                let all: Vec<u32> = (0..5).flat_map(|i| bits(out.row(i))).collect();
                assert_eq!(*first.get_or_insert(all.clone()), all, "{dim} {}", cpu.level);
            }
        }
    }

    #[test]
    fn values_are_those_of_the_definition() {
        let mut noise = Noise(2);
        for (dim, size) in [(64, 1.0), (80, 1e-5), (1536, 1e4)] {
            let x: Vec<f32> = noise.floats(dim).iter().map(|x| x * size).collect();
            let weight = noise.floats(dim);
            let square = |x: &f32| f64::from(*x) * f64::from(*x);
            let mean = x.iter().map(square).sum::<f64>() / dim as f64;
            let factor = 1.0 / (mean + f64::from(EPS)).sqrt();
            let out = norm(&cpus()[0], &x, &[0], &weight);
            for ((x, w), y) in x.iter().zip(&weight).zip(out.row(0)) {
                let exact = f64::from(*x) * factor * f64::from(*w);
                // A lane adds dim / 16 squares, the tree 4 more; the root halves that error; six
                // roundings follow.
                let bound = ((dim / 16 + 4) as f64 / 2.0 + 6.0) * 2f64.powi(-24) * exact.abs();
                assert!((f64::from(*y) - exact).abs() <= bound, "{y} for {exact}");
            }
        }
    }

    #[test]
    fn the_quantised_forms_come_along() {
        let cpu = &cpus()[0];
        let x = Noise(3).floats(256);
        let out = norm(cpu, &x, &[0], &[1.0; 256]);
        let mut again = norm(cpu, &x, &[0], &[1.0; 256]);
        again.quantise(cpu, 1).unwrap();
        assert_ne!(out.supers(0)[0].scale.to_bits(), 0);
        assert_eq!(out.supers(0)[0].words, again.supers(0)[0].words);
        assert_eq!(out.pairs(0)[3].words, again.pairs(0)[3].words);
    }

    #[test]
    fn heads_are_rows() {
        let (mut noise, heads, dim) = (Noise(4), 70, 80);
        let (x, weight) = (noise.floats(heads * dim), noise.floats(dim));
        for cpu in cpus() {
            let mut by_head = x.clone();
            rms_norm_heads(&cpu, &mut by_head, &weight, EPS).unwrap();
            let select: Vec<u32> = (0..heads as u32).collect();
            let out = norm(&cpu, &x, &select, &weight);
            for (i, head) in by_head.chunks(dim).enumerate() {
                assert_eq!(bits(head), bits(out.row(i)));
            }
        }
    }
}
