//! F32: a group is one column.

use super::{Layout, ROWS};
use crate::format::F32;

/// One column of sixteen rows.
#[derive(Copy, Clone)]
#[repr(C, align(64))]
pub(crate) struct Group {
    pub(crate) w: [f32; ROWS],
}

impl Layout for F32 {
    type Group = Group;
    const BLOCKS: usize = 1;
    const ZERO: Group = Group { w: [0.0; ROWS] };

    fn insert(group: &mut Group, _: usize, row: usize, block: &f32) {
        group.w[row] = *block;
    }

    fn extract(group: &Group, _: usize, row: usize) -> f32 {
        group.w[row]
    }
}
