//! exp((x - max) * scale) over a row, and its sum: the operations of `specdec_core::math::exp` and
//! `sum`, in their order.

use crate::level::Kernel;
use crate::simd::{LANES, Simd};

/// Constants of `specdec_core::math::exp`.
const EXP_FLOOR: f32 = -87.3;
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = -2.121_944_4e-4;
const SERIES: [f32; 6] = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5];

/// e^x for x <= 0, without fused operations, as its definition has none.
#[inline(always)]
fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    let floor = s.splat(EXP_FLOOR);
    let clamped = s.max(x, floor);
    let n = s.round(s.mul(clamped, s.splat(std::f32::consts::LOG2_E)));
    let r = s.sub(clamped, s.mul(n, s.splat(LN_2_HIGH)));
    let r = s.sub(r, s.mul(n, s.splat(LN_2_LOW)));
    let mut tail = s.splat(SERIES[0]);
    let mut i = 1;
    while i < SERIES.len() {
        tail = s.add(s.mul(tail, r), s.splat(SERIES[i]));
        i += 1;
    }
    let mantissa = s.add(s.splat(1.0), s.add(r, s.mul(s.mul(r, r), tail)));
    s.where_ge(x, floor, s.mul(mantissa, s.pow2(s.to_i32(n))))
}

/// The weights of 16 logits.
#[inline(always)]
fn weights<S: Simd>(s: S, x: S::F, max: S::F, scale: S::F) -> S::F {
    exp(s, s.mul(s.sub(x, max), scale))
}

/// What is behind the last full vector of a row; -inf has no weight.
#[inline(always)]
fn padded(tail: &[f32]) -> [f32; LANES] {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    lanes[..tail.len()].copy_from_slice(tail);
    lanes
}

/// The sum of the weights of a row, over 16 lanes of f64.
pub(super) struct ExpSum<'a> {
    pub(super) row: &'a [f32],
    pub(super) max: f32,
    pub(super) scale: f32,
}

impl Kernel for ExpSum<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f64 {
        let (max, scale) = (s.splat(self.max), s.splat(self.scale));
        let mut sum = s.zero_f64();
        let (vectors, tail) = self.row.as_chunks::<LANES>();
        for vector in vectors {
            sum = s.add_f64(sum, weights(s, s.load(vector), max, scale));
        }
        if !tail.is_empty() {
            sum = s.add_f64(sum, weights(s, s.load(&padded(tail)), max, scale));
        }
        s.sum_f64(sum)
    }
}

/// The same, and every weight in `out`, which is as long as the row.
pub(super) struct ExpInto<'a> {
    pub(super) row: &'a [f32],
    pub(super) max: f32,
    pub(super) scale: f32,
    pub(super) out: &'a mut [f64],
}

impl Kernel for ExpInto<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f64 {
        let (max, scale) = (s.splat(self.max), s.splat(self.scale));
        let mut sum = s.zero_f64();
        let mut lanes = [0.0; LANES];
        for (vector, out) in self.row.chunks(LANES).zip(self.out.chunks_mut(LANES)) {
            let x = match vector.first_chunk() {
                Some(full) => s.load(full),
                None => s.load(&padded(vector)),
            };
            let w = weights(s, x, max, scale);
            sum = s.add_f64(sum, w);
            s.store(w, &mut lanes);
            for (to, from) in out.iter_mut().zip(lanes) {
                *to = f64::from(from);
            }
        }
        s.sum_f64(sum)
    }
}
