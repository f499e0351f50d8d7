//! Gated activations: what stands between the two products of a feed-forward layer.

use crate::acts::{Acts, Row};
use crate::cpu::Cpu;
use crate::level::Kernel;
use crate::math::sigmoid_mul;
use crate::pool::PoolError;
use crate::simd::{LANES, Simd, prefetch_row};

/// out = silu(gate) * up, row by row, then out's quantised forms are brought up to date
/// (Shazeer 2020, arXiv 2002.05202). `gate` and `up` are `rows` rows of `out.cols()` values.
///
/// # Errors
/// As [`crate::Pool::run`].
///
/// # Panics
/// If the lengths do not fit.
pub fn swiglu(
    cpu: &Cpu,
    gate: &[f32],
    up: &[f32],
    rows: usize,
    out: &mut Acts,
) -> Result<(), PoolError> {
    gated(cpu, Gate::Silu, gate, up, rows, out)
}

/// The same with gelu, in the form with tanh, for silu.
///
/// # Errors
/// As [`swiglu`].
///
/// # Panics
/// As [`swiglu`].
pub fn geglu(
    cpu: &Cpu,
    gate: &[f32],
    up: &[f32],
    rows: usize,
    out: &mut Acts,
) -> Result<(), PoolError> {
    gated(cpu, Gate::Gelu, gate, up, rows, out)
}

#[derive(Clone, Copy)]
enum Gate {
    Silu,
    Gelu,
}

/// Values of a tile: whole blocks of the largest quantised form, about two microseconds of work.
const TILE: usize = 2048;

fn gated(
    cpu: &Cpu,
    function: Gate,
    gate: &[f32],
    up: &[f32],
    rows: usize,
    out: &mut Acts,
) -> Result<(), PoolError> {
    let cols = out.cols();
    assert!(
        gate.len() == rows * cols && up.len() == rows * cols,
        "{} gates and {} values for {rows} rows of {cols}",
        gate.len(),
        up.len()
    );
    let out = out.split(rows);
    // By columns first, as the product before parts its outputs among threads.
    let (down, across) = (out.tiles(), cols.div_ceil(TILE));
    cpu.pool.run(down * across, &|tile| {
        let start = tile / down * TILE;
        let range = start..(start + TILE).min(cols);
        for row in out.of_tile(tile % down) {
            let (gate, up) = (&gate[row * cols..][range.clone()], &up[row * cols..][range.clone()]);
            // SAFETY: tiles do not overlap.
            let out = unsafe { out.run(row, range.clone()) };
            cpu.level.run(Gated { function, gate, up, out });
        }
    })
}

struct Gated<'a> {
    function: Gate,
    gate: &'a [f32],
    up: &'a [f32],
    out: Row<'a>,
}

impl Kernel for Gated<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let (gates, gate_tail) = self.gate.as_chunks::<LANES>();
        let (ups, up_tail) = self.up.as_chunks::<LANES>();
        let (outs, out_tail) = self.out.values.as_chunks_mut::<LANES>();
        for ((gate, up), out) in gates.iter().zip(ups).zip(outs) {
            prefetch_row(gate);
            prefetch_row(up);
            s.store(self.function.apply(s, s.load(gate), s.load(up)), out);
        }
        let last = self.function.apply(s, s.load_tail(gate_tail), s.load_tail(up_tail));
        s.store_tail(last, out_tail);
        self.out.quantise(s);
    }
}

impl Gate {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, gate: S::F, up: S::F) -> S::F {
        let argument = match self {
            Gate::Silu => gate,
            Gate::Gelu => gelu_argument(s, gate),
        };
        s.mul(sigmoid_mul(s, gate, argument), up)
    }
}

/// x (1 + tanh(y)) / 2 is x times the sigmoid of 2 y, y = sqrt(2 / pi) (x + 0.044715 x^3)
/// (Hendrycks and Gimpel 2016, arXiv 1606.08415).
#[inline(always)]
fn gelu_argument<S: Simd>(s: S, x: S::F) -> S::F {
    const TWICE_ROOT: f32 = 1.595_769;
    let cubic = s.fma(s.mul(x, x), s.splat(TWICE_ROOT * 0.044_715), s.splat(TWICE_ROOT));
    s.mul(x, cubic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acts::Forms;
    use crate::testing::{Noise, bits, cpus};

    const BOTH: Forms = Forms { int8x32: true, int8x256: true };

    fn silu(x: f64) -> f64 {
        x / (1.0 + (-x).exp())
    }

    fn gelu(x: f64) -> f64 {
        let root = (2.0 / std::f64::consts::PI).sqrt();
        0.5 * x * (1.0 + (root * (x + 0.044_715 * x.powi(3))).tanh())
    }

    #[test]
    fn a_row_has_the_same_bits_in_any_company() {
        let mut noise = Noise(1);
        for cols in [16, 64, 576, 1000, 1024, 1040, 4864] {
            let (gate, up) = (noise.floats(3 * cols), noise.floats(3 * cols));
            let mut first = None;
            for cpu in cpus() {
                let mut out = Acts::new(3, cols, BOTH);
                swiglu(&cpu, &gate, &up, 3, &mut out).unwrap();
                let mut alone = Acts::new(1, cols, BOTH);
                swiglu(&cpu, &gate[cols..2 * cols], &up[cols..2 * cols], 1, &mut alone).unwrap();
                assert_eq!(bits(out.row(1)), bits(alone.row(0)));
                let all: Vec<u32> = (0..3).flat_map(|i| bits(out.row(i))).collect();
                assert_eq!(*first.get_or_insert(all.clone()), all, "{cols} {}", cpu.level);
            }
        }
    }

    #[test]
    fn the_quantised_forms_come_along() {
        let mut noise = Noise(2);
        let cols = 2 * TILE + 96;
        let (gate, up) = (noise.floats(2 * cols), noise.floats(2 * cols));
        for forms in [BOTH, Forms { int8x32: true, int8x256: false }, Forms::default()] {
            for cpu in cpus() {
                let mut out = Acts::new(2, cols, forms);
                swiglu(&cpu, &gate, &up, 2, &mut out).unwrap();
                let mut again = Acts::new(2, cols, forms);
                again.rows_mut(2).copy_from_slice(&[out.row(0), out.row(1)].concat());
                again.quantise(&cpu, 2).unwrap();
                for row in 0..2 {
                    let words = |acts: &Acts| {
                        let pairs = acts.pairs(row).into_iter().flat_map(|p| p.words);
                        pairs.chain(acts.supers(row).into_iter().flat_map(|s| s.words)).collect()
                    };
                    let (found, expected): (Vec<_>, Vec<_>) = (words(&out), words(&again));
                    assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn values_are_those_of_the_definition() {
        let cpu = &cpus()[0];
        let gate: Vec<f32> = (0..2000).map(|i| (i - 1000) as f32 * 0.08).collect();
        let up = Noise(3).floats(2000);
        let mut out = Acts::new(1, 2000, Forms::default());
        swiglu(cpu, &gate, &up, 1, &mut out).unwrap();
        for ((g, u), y) in gate.iter().zip(&up).zip(out.row(0)) {
            let exact = silu(f64::from(*g)) * f64::from(*u);
            // Silu to 2.5 ulps, one product.
            let bound = 3.5 * 2f64.powi(-23) * exact.abs() + f64::from(f32::MIN_POSITIVE);
            assert!((f64::from(*y) - exact).abs() <= bound, "{y} for {exact} at {g}");
        }
        geglu(cpu, &gate, &up, 1, &mut out).unwrap();
        for ((g, u), y) in gate.iter().zip(&up).zip(out.row(0)) {
            let exact = gelu(f64::from(*g)) * f64::from(*u);
            // The exponent, up to 2 |x| * (1 + 0.045 x^2), carries three roundings into e^-z; the
            // reference loses 2^-52 to cancellation where tanh is near -1.
            let exponent = f64::from(g.abs()) * (1.6 + 0.072 * f64::from(g * g));
            let relative = (3.5 + 2.0 * exponent.min(90.0)) * 2f64.powi(-23);
            let bound = relative * exact.abs() + 1e-14;
            assert!((f64::from(*y) - exact).abs() <= bound, "{y} for {exact} at {g}");
        }
    }

    #[test]
    fn gates_far_out_are_zero_or_one() {
        let gate = [f32::MIN, -1e30, -200.0, 200.0, 1e30, f32::MAX, 0.0, -0.0];
        for cpu in cpus() {
            for function in [swiglu, geglu] {
                let mut out = Acts::new(1, 8, Forms::default());
                function(&cpu, &gate, &[1.0; 8], 1, &mut out).unwrap();
                assert_eq!(out.row(0), [0.0, 0.0, 0.0, 200.0, 1e30, f32::MAX, 0.0, 0.0]);
            }
        }
    }
}
