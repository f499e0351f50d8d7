//! Q4_0: 4.5 bits a weight.

use super::codes::{get_nibbles, put_nibbles};
use super::{Layout, ROWS};
use crate::format::{Q4_0, q4_0::Block};

/// Two blocks of sixteen rows.
#[derive(Copy, Clone)]
#[repr(C, align(64))]
pub(crate) struct Group {
    pub(crate) d: [[u16; ROWS]; 2],
    pub(crate) codes: [[[u8; 64]; 4]; 2],
}

impl Layout for Q4_0 {
    type Group = Group;
    const BLOCKS: usize = 2;
    const ZERO: Group = Group { d: [[0; ROWS]; 2], codes: [[[0; 64]; 4]; 2] };

    fn insert(group: &mut Group, at: usize, row: usize, block: &Block) {
        group.d[at][row] = block.d;
        put_nibbles(&mut group.codes[at], row, &block.codes);
    }

    fn extract(group: &Group, at: usize, row: usize) -> Block {
        let mut codes = [0; 32];
        get_nibbles(&group.codes[at], row, &mut codes);
        Block { d: group.d[at][row], codes }
    }
}
