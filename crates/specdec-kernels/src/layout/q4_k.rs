//! Q4_K: 4.625 bits a weight (scales and offsets take a byte instead of 6 bits each).

use super::codes::{get_nibbles, put_nibbles};
use super::{Layout, ROWS};
use crate::format::{Q4K, q4_k::Block};

/// One block of sixteen rows.
#[derive(Copy, Clone)]
#[repr(C, align(64))]
pub(crate) struct Group {
    pub(crate) d: [u16; ROWS],
    pub(crate) m: [u16; ROWS],
    /// Offsets of sub-blocks 2j and 2j + 1 of a row side by side.
    pub(crate) offsets: [[[u8; 2]; ROWS]; 4],
    pub(crate) scales: [[u8; ROWS]; 8],
    pub(crate) codes: [[[u8; 64]; 4]; 8],
}

impl Layout for Q4K {
    type Group = Group;
    const BLOCKS: usize = 1;
    const ZERO: Group = Group {
        d: [0; ROWS],
        m: [0; ROWS],
        offsets: [[[0; 2]; ROWS]; 4],
        scales: [[0; ROWS]; 8],
        codes: [[[0; 64]; 4]; 8],
    };

    fn insert(group: &mut Group, _: usize, row: usize, block: &Block) {
        group.d[row] = block.d;
        group.m[row] = block.m;
        for j in 0..8 {
            group.offsets[j / 2][row][j % 2] = block.offsets[j];
            group.scales[j][row] = block.scales[j];
            put_nibbles(&mut group.codes[j], row, &block.codes[j]);
        }
    }

    fn extract(group: &Group, _: usize, row: usize) -> Block {
        let mut codes = [[0; 32]; 8];
        for (j, codes) in codes.iter_mut().enumerate() {
            get_nibbles(&group.codes[j], row, codes);
        }
        Block {
            d: group.d[row],
            m: group.m[row],
            scales: group.scales.map(|scales| scales[row]),
            offsets: std::array::from_fn(|j| group.offsets[j / 2][row][j % 2]),
            codes,
        }
    }
}
