//! Quantised blocks on cache lines.

use std::ops::{Deref, DerefMut};

use crate::memory::LINE;

/// Rows whose blocks of the same columns fill whole lines. Threads that write to one line wait for
/// each other: with rows of their own, two took longer over the norm of four rows than one alone.
pub(super) const ROWS_OF_A_TILE: usize = 2;

/// Values that begin with a line, each of them some lines long, or some and a half.
pub(super) struct Lines<T> {
    all: Vec<T>,
    skip: usize,
}

impl<T: Copy + Default> Lines<T> {
    pub(super) fn new(len: usize) -> Self {
        const {
            assert!(align_of::<T>() == LINE || align_of::<T>() == LINE / 2);
            assert!(size_of::<T>() % LINE == align_of::<T>() % LINE);
        }
        let all = vec![T::default(); len + 1];
        // Where values may lie half a line off, each ends with half a line: the next one is right.
        let skip = usize::from(!all.as_ptr().addr().is_multiple_of(LINE));
        Self { all, skip }
    }
}

impl<T> Deref for Lines<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.all[self.skip..][..self.all.len() - 1]
    }
}

impl<T> DerefMut for Lines<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let len = self.all.len() - 1;
        &mut self.all[self.skip..][..len]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pair;
    use super::*;

    #[test]
    fn every_second_value_begins_a_line() {
        // Kept alive, so that the allocator gives different places.
        let all: Vec<Lines<Pair>> = (0..64).map(Lines::new).collect();
        for (len, lines) in all.iter().enumerate() {
            assert_eq!(lines.len(), len);
            for two in lines.chunks(ROWS_OF_A_TILE) {
                assert!(two.as_ptr().addr().is_multiple_of(LINE));
            }
        }
    }
}
