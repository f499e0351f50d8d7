//! Q8_0: 8.5 bits a weight, codes stored plus 128.

use super::codes::{get_bytes, put_bytes};
use super::{Layout, ROWS};
use crate::format::{Q8_0, q8_0::Block};

/// Two blocks of sixteen rows.
#[derive(Copy, Clone)]
#[repr(C, align(64))]
pub(crate) struct Group {
    pub(crate) d: [[u16; ROWS]; 2],
    pub(crate) codes: [[[u8; 64]; 8]; 2],
}

/// Adds or takes away the offset of 128.
fn flip(code: u8) -> u8 {
    code ^ 0x80
}

impl Layout for Q8_0 {
    type Group = Group;
    const BLOCKS: usize = 2;
    const ZERO: Group = Group { d: [[0; ROWS]; 2], codes: [[[0x80; 64]; 8]; 2] };

    fn insert(group: &mut Group, at: usize, row: usize, block: &Block) {
        group.d[at][row] = block.d;
        put_bytes(&mut group.codes[at], row, &block.codes.map(|code| flip(code as u8)));
    }

    fn extract(group: &Group, at: usize, row: usize) -> Block {
        let mut codes = [0; 32];
        get_bytes(&group.codes[at], row, &mut codes);
        Block { d: group.d[at][row], codes: codes.map(|code| flip(code) as i8) }
    }
}
