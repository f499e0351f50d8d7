//! The formulas of a decoder layer on candle tensors, as textbooks write them, in f32.

use candle_core::{D, Result, Tensor};

use crate::load::config::RopeKind;

/// `x / sqrt(mean(x^2) + eps) * weight`, row by row (Zhang and Sennrich 2019). `x`: rows x width.
pub(super) fn rms_norm(x: &Tensor, weight: &Tensor, eps: f32) -> Result<Tensor> {
    let mean = x.sqr()?.mean_keepdim(D::Minus1)?;
    x.broadcast_div(&(mean + f64::from(eps))?.sqrt()?)?.broadcast_mul(weight)
}

/// `exp(x) / sum exp(x)` over the last dimension; the maximum is taken out first.
fn softmax(x: &Tensor) -> Result<Tensor> {
    let e = x.broadcast_sub(&x.max_keepdim(D::Minus1)?)?.exp()?;
    e.broadcast_div(&e.sum_keepdim(D::Minus1)?)
}

/// `softmax(scale q k + mask) v` (Vaswani et al. 2017), query head `h` on key head
/// `h / (heads / kv_heads)` (Ainslie et al. 2023).
///
/// `q`: rows x heads x d; `k`, `v`: keys x `kv_heads` x d; `mask`: rows x keys, 0 where a row sees a
/// key and minus infinity elsewhere. Result: rows x (heads * d).
pub(super) fn attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: &Tensor,
    scale: f32,
) -> Result<Tensor> {
    let (rows, heads, d) = q.dims3()?;
    let (keys, kv_heads, _) = k.dims3()?;
    let group = heads / kv_heads;
    let q = q.reshape((rows, kv_heads, group, d))?.transpose(0, 1)?.contiguous()?;
    let q = q.reshape((kv_heads, rows * group, d))?;
    let k = k.permute((1, 2, 0))?.contiguous()?;
    let scores = (q.matmul(&k)? * f64::from(scale))?.reshape((kv_heads, rows, group, keys))?;
    let p = softmax(&scores.broadcast_add(&mask.unsqueeze(1)?)?)?;
    let v = v.transpose(0, 1)?.contiguous()?;
    let out = p.reshape((kv_heads, rows * group, keys))?.matmul(&v)?;
    let out = out.reshape((kv_heads, rows, group, d))?.transpose(0, 1)?;
    out.contiguous()?.reshape((rows, heads * d))
}

/// The rotations of some positions: cosines and sines, rows x 1 x d/2.
pub(super) struct Rotations {
    pub(super) cos: Tensor,
    pub(super) sin: Tensor,
}

impl Rotations {
    /// Pair `i` of a head of width `d` turns by `position * base^(-2i/d)` (Su et al. 2021), divided
    /// by `divisors[i]` where there are any.
    pub(super) fn new(
        device: &candle_core::Device,
        positions: &[u32],
        d: usize,
        base: f32,
        divisors: Option<&[f32]>,
    ) -> Result<Self> {
        let divisor = |i: u32| divisors.map_or(1.0, |all| f64::from(all[i as usize]));
        let angles = positions.iter().flat_map(|&position| {
            let turn = move |i| f64::from(base).powf(-2.0 * f64::from(i) / d as f64);
            let angle = move |i| f64::from(position) * (turn(i) / divisor(i));
            (0..d as u32 / 2).map(angle)
        });
        let (cos, sin): (Vec<f32>, Vec<f32>) =
            angles.map(|angle| (angle.cos() as f32, angle.sin() as f32)).unzip();
        let shape = (positions.len(), 1, d / 2);
        Ok(Self {
            cos: Tensor::from_vec(cos, shape, device)?,
            sin: Tensor::from_vec(sin, shape, device)?,
        })
    }

    /// Turns `x`, rows x heads x d.
    pub(super) fn apply(&self, x: &Tensor, kind: RopeKind) -> Result<Tensor> {
        let (rows, heads, d) = x.dims3()?;
        // The axis that tells the two elements of a pair apart.
        let (split, axis) = match kind {
            RopeKind::Pairs => ((rows, heads, d / 2, 2), 3),
            RopeKind::Halves => ((rows, heads, 2, d / 2), 2),
        };
        let x = x.reshape(split)?;
        let (a, b) = (x.narrow(axis, 0, 1)?.squeeze(axis)?, x.narrow(axis, 1, 1)?.squeeze(axis)?);
        let (cos, sin) = (&self.cos, &self.sin);
        let first = (a.broadcast_mul(cos)? - b.broadcast_mul(sin)?)?;
        let second = (a.broadcast_mul(sin)? + b.broadcast_mul(cos)?)?;
        Tensor::stack(&[first, second], axis)?.reshape((rows, heads, d))
    }
}
