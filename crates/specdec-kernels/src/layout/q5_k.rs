//! Q5_K: 5.5 bits a weight, as in the file. The fifth bit of columns 4i.. of a sub-block is bit i
//! of a byte of its `high`.

use super::Layout;
use super::codes::{get_high, get_nibbles, put_high, put_nibbles};
use super::q4_k::Head;
use crate::format::{Q5K, q4_k::Block};

/// Codes of a sub-block of 32 columns.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct Sub {
    pub(crate) high: [u8; 64],
    pub(crate) low: [[u8; 64]; 4],
}

/// One block of sixteen rows.
#[derive(Copy, Clone)]
#[repr(C, align(64))]
pub(crate) struct Group {
    pub(crate) head: Head,
    pub(crate) subs: [Sub; 8],
}

impl Layout for Q5K {
    type Group = Group;
    const BLOCKS: usize = 1;
    const ZERO: Group =
        Group { head: Head::ZERO, subs: [Sub { high: [0; 64], low: [[0; 64]; 4] }; 8] };

    fn insert(group: &mut Group, _: usize, row: usize, block: &Block) {
        group.head.insert(row, block);
        for (sub, codes) in group.subs.iter_mut().zip(&block.codes) {
            put_nibbles(&mut sub.low, row, codes);
            put_high::<1>(&mut sub.high, row, codes);
        }
    }

    fn extract(group: &Group, _: usize, row: usize) -> Block {
        let mut codes = [[0; 32]; 8];
        for (sub, codes) in group.subs.iter().zip(&mut codes) {
            get_nibbles(&sub.low, row, codes);
            get_high::<1>(&sub.high, row, codes);
        }
        group.head.extract(row, codes)
    }
}
