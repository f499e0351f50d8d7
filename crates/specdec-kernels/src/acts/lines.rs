//! Quantised blocks on cache lines.

use std::ops::{Deref, DerefMut};

const LINE: usize = 64;

/// Rows whose blocks of the same columns fill whole lines. Threads that write to one line wait for
/// each other: with rows of their own, two took longer over the norm of four rows than one alone.
pub(super) const ROWS_OF_A_TILE: usize = 2;

/// Values that begin with a line, each of them a multiple of half a line.
pub(super) struct Lines<T> {
    all: Vec<T>,
    skip: usize,
}

impl<T: Copy + Default> Lines<T> {
    pub(super) fn new(len: usize) -> Self {
        const {
            assert!(align_of::<T>() == LINE / 2);
            assert!((size_of::<T>() * ROWS_OF_A_TILE).is_multiple_of(LINE));
        }
        let all = vec![T::default(); len + 1];
        // What lies half a line off is right one value further, as a value ends with half a line.
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
