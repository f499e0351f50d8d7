//! Dense formats: a group is one column.

use super::{Layout, ROWS};
use crate::format::{BF16, F16, F32};

/// One column of sixteen rows in single precision.
#[derive(Copy, Clone)]
#[repr(C, align(64))]
pub(crate) struct Single {
    pub(crate) w: [f32; ROWS],
}

/// One column of sixteen rows in two bytes each.
#[derive(Copy, Clone)]
#[repr(C, align(32))]
pub(crate) struct Half {
    pub(crate) w: [u16; ROWS],
}

/// A layout whose group is the sixteen numbers of a column.
macro_rules! column {
    ($format:ident, $group:ident, $number:ty, $zero:expr) => {
        impl Layout for $format {
            type Group = $group;
            const BLOCKS: usize = 1;
            const ZERO: $group = $group { w: [$zero; ROWS] };

            fn insert(group: &mut $group, _: usize, row: usize, block: &$number) {
                group.w[row] = *block;
            }

            fn extract(group: &$group, _: usize, row: usize) -> $number {
                group.w[row]
            }
        }
    };
}
column!(F32, Single, f32, 0.0);
column!(F16, Half, u16, 0);
column!(BF16, Half, u16, 0);
