//! Q6_K: 6.5625 bits a weight, as in the file. The high two bits of columns 4i.. of a sub-block of
//! 16 are bits 2i and 2i + 1 of a byte of `high`.

use super::codes::{get_high, get_nibbles, put_high, put_nibbles};
use super::{Layout, ROWS};
use crate::format::{Q6K, q6_k::Block};

/// Codes of a sub-block of 16 columns.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct Sub {
    pub(crate) high: [u8; 64],
    pub(crate) low: [[u8; 64]; 2],
}

/// One block of sixteen rows.
#[derive(Copy, Clone)]
#[repr(C, align(32))]
pub(crate) struct Group {
    pub(crate) d: [u16; ROWS],
    /// Scales of sub-blocks 2i and 2i + 1 side by side.
    pub(crate) scales: [[[i8; 2]; ROWS]; 8],
    pub(crate) subs: [Sub; 16],
}

impl Layout for Q6K {
    type Group = Group;
    const BLOCKS: usize = 1;
    const ZERO: Group = Group {
        d: [0; ROWS],
        scales: [[[0; 2]; ROWS]; 8],
        subs: [Sub { high: [0; 64], low: [[0; 64]; 2] }; 16],
    };

    fn insert(group: &mut Group, _: usize, row: usize, block: &Block) {
        group.d[row] = block.d;
        for j in 0..16 {
            group.scales[j / 2][row][j % 2] = block.scales[j];
            put_nibbles(&mut group.subs[j].low, row, &block.codes[j]);
            put_high::<2>(&mut group.subs[j].high, row, &block.codes[j]);
        }
    }

    fn extract(group: &Group, _: usize, row: usize) -> Block {
        let mut codes = [[0; 16]; 16];
        for (sub, codes) in group.subs.iter().zip(&mut codes) {
            get_nibbles(&sub.low, row, codes);
            get_high::<2>(&sub.high, row, codes);
        }
        let scales = std::array::from_fn(|j| group.scales[j / 2][row][j % 2]);
        Block { d: group.d[row], scales, codes }
    }
}
