//! Q5_1: 6 bits a weight. Fifth bits lie as in Q5_0.

use super::codes::{get_high, get_nibbles, put_high, put_nibbles};
use super::{Layout, ROWS};
use crate::format::{Q5_1, q5_1::Block};

/// Two blocks of sixteen rows.
#[derive(Copy, Clone)]
#[repr(C, align(64))]
pub(crate) struct Group {
    pub(crate) d: [[u16; ROWS]; 2],
    pub(crate) m: [[u16; ROWS]; 2],
    pub(crate) high: [[u8; 64]; 2],
    pub(crate) low: [[[u8; 64]; 4]; 2],
}

impl Layout for Q5_1 {
    type Group = Group;
    const BLOCKS: usize = 2;
    const ZERO: Group =
        Group { d: [[0; ROWS]; 2], m: [[0; ROWS]; 2], high: [[0; 64]; 2], low: [[[0; 64]; 4]; 2] };

    fn insert(group: &mut Group, at: usize, row: usize, block: &Block) {
        group.d[at][row] = block.d;
        group.m[at][row] = block.m;
        put_nibbles(&mut group.low[at], row, &block.codes);
        put_high::<1>(&mut group.high[at], row, &block.codes);
    }

    fn extract(group: &Group, at: usize, row: usize) -> Block {
        let mut codes = [0; 32];
        get_nibbles(&group.low[at], row, &mut codes);
        get_high::<1>(&group.high[at], row, &mut codes);
        Block { d: group.d[at][row], m: group.m[at][row], codes }
    }
}
