//! F32: one fused multiply-add a column.

use super::panel::{Dot, ahead};
use crate::acts::Acts;
use crate::format::F32;
use crate::layout::dense::Group;
use crate::simd::Simd;

impl Dot for F32 {
    type X = f32;

    #[inline(always)]
    fn activations(acts: &Acts, row: usize) -> &[f32] {
        acts.row(row)
    }

    #[inline(always)]
    fn dot<S: Simd, const R: usize>(s: S, group: &Group, x: &[&f32; R], acc: &mut [S::F; R]) {
        ahead::<R, _>(group);
        let w = s.load(&group.w);
        for r in 0..R {
            acc[r] = s.fma(w, s.splat(*x[r]), acc[r]);
        }
    }
}
