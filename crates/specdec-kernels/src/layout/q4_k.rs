//! Q4_K: 4.5 bits a weight, as in the file.
//!
//! Scale and offset of sub-block j of a row have place 64 * (j / 4) + 4 * row + byte among 128, so
//! that those of four sub-blocks make a word; bytes 0 and 2 are those of the first two, so that a
//! mask leaves each two neighbours as numbers of 16 bits. Their low four bits are the halves of byte
//! `place` of `low`; their high two bits are four bits of byte `place` % 64 of `high`, the low four
//! for the first 64 places, the high four for the others. In each pair the scale comes first.

use super::codes::{get_nibbles, put_nibbles};
use super::{Layout, ROWS};
use crate::format::{Q4K, q4_k::Block};

/// One block of sixteen rows.
#[derive(Copy, Clone)]
#[repr(C, align(64))]
pub(crate) struct Group {
    pub(crate) head: Head,
    pub(crate) codes: [[[u8; 64]; 4]; 8],
}

/// Everything but the codes; Q5_K has the same.
#[derive(Copy, Clone)]
#[repr(C)]
pub(crate) struct Head {
    pub(crate) d: [u16; ROWS],
    pub(crate) m: [u16; ROWS],
    pub(crate) high: [u8; 64],
    pub(crate) low: [[u8; 64]; 2],
}

/// Where the scale and the offset of a sub-block stand: vector and byte.
fn place(row: usize, j: usize) -> (usize, usize) {
    (j / 4, 4 * row + 2 * (j % 2) + j % 4 / 2)
}

impl Head {
    pub(super) const ZERO: Head =
        Head { d: [0; ROWS], m: [0; ROWS], high: [0; 64], low: [[0; 64]; 2] };

    /// Takes all but the codes of a block.
    pub(super) fn insert(&mut self, row: usize, block: &Block) {
        self.d[row] = block.d;
        self.m[row] = block.m;
        for j in 0..8 {
            self.put(row, j, block.scales[j], block.offsets[j]);
        }
    }

    /// Gives them back, with these codes.
    pub(super) fn extract(&self, row: usize, codes: [[u8; 32]; 8]) -> Block {
        Block {
            d: self.d[row],
            m: self.m[row],
            scales: std::array::from_fn(|j| self.get(row, j).0),
            offsets: std::array::from_fn(|j| self.get(row, j).1),
            codes,
        }
    }

    fn put(&mut self, row: usize, j: usize, scale: u8, offset: u8) {
        let (half, byte) = place(row, j);
        self.low[half][byte] = scale & 15 | offset << 4;
        self.high[byte] &= !(15 << (4 * half));
        self.high[byte] |= (scale >> 4 | offset >> 4 << 2) << (4 * half);
    }

    fn get(&self, row: usize, j: usize) -> (u8, u8) {
        let (half, byte) = place(row, j);
        let (low, high) = (self.low[half][byte], self.high[byte] >> (4 * half));
        (low & 15 | (high & 3) << 4, low >> 4 | (high >> 2 & 3) << 4)
    }
}

impl Layout for Q4K {
    type Group = Group;
    const BLOCKS: usize = 1;
    const ZERO: Group = Group { head: Head::ZERO, codes: [[[0; 64]; 4]; 8] };

    fn insert(group: &mut Group, _: usize, row: usize, block: &Block) {
        group.head.insert(row, block);
        for (vectors, codes) in group.codes.iter_mut().zip(&block.codes) {
            put_nibbles(vectors, row, codes);
        }
    }

    fn extract(group: &Group, _: usize, row: usize) -> Block {
        let mut codes = [[0; 32]; 8];
        for (vectors, codes) in group.codes.iter().zip(&mut codes) {
            get_nibbles(vectors, row, codes);
        }
        group.head.extract(row, codes)
    }
}
