//! Dense formats: one fused multiply-add a column.

use super::panel::{Dot, ahead};
use crate::format::{BF16, F16, F32};
use crate::layout::dense::{Half, Single};
use crate::simd::Simd;

/// A format whose columns are loaded by one operation.
macro_rules! column {
    ($format:ident, $group:ident, $load:ident) => {
        impl Dot for $format {
            type X = f32;

            #[inline(always)]
            fn dot<S: Simd, const R: usize>(
                s: S,
                group: &$group,
                x: &[&f32; R],
                acc: &mut [S::F; R],
            ) {
                ahead(group);
                let w = s.$load(&group.w);
                for r in 0..R {
                    acc[r] = s.fma(w, s.splat(*x[r]), acc[r]);
                }
            }
        }
    };
}
column!(F32, Single, load);
column!(F16, Half, load_f16);
column!(BF16, Half, load_bf16);
