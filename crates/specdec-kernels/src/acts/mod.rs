//! Activations: rows of single precision and the signed bytes that quantised products read.
//!
//! A block of 32 or 256 values is stored as q in [-127, 127] and one scale, max|x| / 127:
//! x ~ scale * q, q = x * (127 / max|x|) rounded to nearest, ties to even. A block whose scale would be no
//! normal number counts as zeros. A NaN or an infinity makes every product with its block NaN.
//!
//! The blocks of all rows of a pass that meet the same weights lie side by side, so that a kernel
//! finds them all from one address.

mod lines;
mod quantise;

use std::ops::Range;

use crate::cpu::Cpu;
use crate::disjoint::Disjoint;
use crate::level::Kernel;
use crate::pool::PoolError;
use crate::simd::Simd;
use lines::{Lines, ROWS_OF_A_TILE};

/// Which quantised forms a set of rows keeps beside single precision.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Forms {
    /// Signed bytes, one scale for every 32 (read by Q4_1, Q5_0, Q8_0).
    pub int8x32: bool,
    /// Signed bytes, one scale for every 256 (read by Q4_K, Q6_K).
    pub int8x256: bool,
}

/// 64 values in two blocks of 32. Four consecutive bytes make a word, the first one lowest.
#[derive(Copy, Clone, Default)]
#[repr(C, align(32))]
pub(crate) struct Pair {
    pub(crate) words: [[i32; 8]; 2],
    pub(crate) scale: [f32; 2],
    /// scale * the sum of q: what a format's added constant is multiplied by.
    pub(crate) sum: [f32; 2],
    /// -16 * the sum of q: corrects codes that are stored plus 16.
    pub(crate) less16: [i32; 2],
    /// -128 * the sum of q: corrects codes that are stored plus 128.
    pub(crate) less128: [i32; 2],
}

/// A block of 256 values.
#[derive(Copy, Clone, Default)]
#[repr(C, align(64))]
pub(crate) struct Super {
    pub(crate) words: [[i32; 8]; 8],
    /// Sums of q over runs of 32, two in a word: 16 bits each, the first one lowest.
    pub(crate) sums: [i32; 4],
    /// 2^15 - 32 * the sum of q over a run of 16, which corrects codes that are stored plus 32, of
    /// two runs in a word: 16 bits each, the second one lowest.
    pub(crate) starts: [i32; 8],
    /// The largest sum of |q| over a run of 16: what a product with such a run can come to.
    pub(crate) most16: i32,
    /// The same over a run of 32.
    pub(crate) most32: i32,
    pub(crate) scale: f32,
}

/// Activation rows of one width.
pub struct Acts {
    max_rows: usize,
    cols: usize,
    values: Vec<f32>,
    pairs: Lines<Pair>,
    supers: Lines<Super>,
    pairs_per_row: usize,
    supers_per_row: usize,
    /// Rows that were written last.
    filled: usize,
}

impl Acts {
    /// Room for `max_rows` rows of `cols` values, all zero.
    pub fn new(max_rows: usize, cols: usize, forms: Forms) -> Acts {
        let pairs_per_row = if forms.int8x32 { cols.div_ceil(64) } else { 0 };
        let supers_per_row = if forms.int8x256 { cols.div_ceil(256) } else { 0 };
        Acts {
            max_rows,
            cols,
            values: vec![0.0; max_rows * cols],
            pairs: Lines::new(whole_tiles(max_rows) * pairs_per_row),
            supers: Lines::new(whole_tiles(max_rows) * supers_per_row),
            pairs_per_row,
            supers_per_row,
            filled: max_rows,
        }
    }

    /// Bytes of memory that `max_rows` rows of `cols` values take in these forms.
    pub fn bytes_for(max_rows: usize, cols: usize, forms: Forms) -> usize {
        let pairs = if forms.int8x32 { cols.div_ceil(64) * size_of::<Pair>() } else { 0 };
        let supers = if forms.int8x256 { cols.div_ceil(256) * size_of::<Super>() } else { 0 };
        max_rows * cols * size_of::<f32>() + whole_tiles(max_rows) * (pairs + supers)
    }

    /// Bytes of memory that all rows take.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.values[..]) + size_of_val(&self.pairs[..]) + size_of_val(&self.supers[..])
    }

    /// Values of a row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Rows there is room for.
    pub fn max_rows(&self) -> usize {
        self.max_rows
    }

    /// Rows whose quantised forms are up to date.
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Row `i` in single precision.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.cols..][..self.cols]
    }

    /// The first `n` rows in single precision, to be written; call [`Acts::quantise`] after.
    pub fn rows_mut(&mut self, n: usize) -> &mut [f32] {
        &mut self.values[..n * self.cols]
    }

    /// Brings the quantised forms of the first `rows` rows up to date with single precision.
    ///
    /// # Errors
    /// As [`crate::Pool::run`].
    pub fn quantise(&mut self, cpu: &Cpu, rows: usize) -> Result<(), PoolError> {
        let split = self.split(rows);
        cpu.pool.run(split.tiles(), &|tile| {
            for i in split.of_tile(tile) {
                // SAFETY: every tile takes its own rows.
                cpu.level.run(Quantise(unsafe { split.row(i) }));
            }
        })
    }

    /// The first `rows` rows, to be written by several threads; what others held is lost.
    pub(crate) fn split(&mut self, rows: usize) -> Rows<'_> {
        assert!(rows <= self.max_rows, "{rows} rows in room for {}", self.max_rows);
        self.filled = rows;
        Rows {
            cols: self.cols,
            filled: rows,
            pairs_per_row: self.pairs_per_row,
            supers_per_row: self.supers_per_row,
            values: Disjoint::new(&mut self.values),
            pairs: Disjoint::new(&mut self.pairs),
            supers: Disjoint::new(&mut self.supers),
        }
    }

    /// Row `i` as pairs of blocks of 32; empty without that form.
    #[cfg(test)]
    pub(crate) fn pairs(&self, i: usize) -> Vec<&Pair> {
        (0..self.pairs_per_row).map(|b| &self.pairs[b * whole_tiles(self.filled) + i]).collect()
    }

    /// Row `i` as blocks of 256; empty without that form.
    #[cfg(test)]
    pub(crate) fn supers(&self, i: usize) -> Vec<&Super> {
        (0..self.supers_per_row).map(|b| &self.supers[b * whole_tiles(self.filled) + i]).collect()
    }
}

/// The places that `rows` rows take in every group of blocks of the same columns: block b of row i
/// has place b * `whole_tiles(rows)` + i.
fn whole_tiles(rows: usize) -> usize {
    rows.next_multiple_of(ROWS_OF_A_TILE)
}

/// A form of activations that products read.
pub(crate) trait Form: Sized + 'static {
    /// Several rows in this form.
    type Rows<'a, const R: usize>: Copy;

    /// Rows `first..first + R`.
    fn rows<const R: usize>(acts: &Acts, first: usize) -> Self::Rows<'_, R>;

    /// Their blocks number `b`.
    fn blocks<const R: usize>(rows: Self::Rows<'_, R>, b: usize) -> [&Self; R];
}

impl Form for f32 {
    type Rows<'a, const R: usize> = [&'a [f32]; R];

    #[inline(always)]
    fn rows<const R: usize>(acts: &Acts, first: usize) -> [&[f32]; R] {
        std::array::from_fn(|r| acts.row(first + r))
    }

    #[inline(always)]
    fn blocks<const R: usize>(rows: Self::Rows<'_, R>, b: usize) -> [&f32; R] {
        rows.map(|row| &row[b])
    }
}

/// Blocks of the same columns side by side.
#[derive(Copy, Clone)]
pub(crate) struct Beside<'a, T> {
    blocks: &'a [T],
    step: usize,
}

macro_rules! beside {
    ($form:ident, $field:ident) => {
        impl Form for $form {
            type Rows<'a, const R: usize> = Beside<'a, $form>;

            #[inline(always)]
            fn rows<const R: usize>(acts: &Acts, first: usize) -> Beside<'_, $form> {
                Beside { blocks: &acts.$field[first..], step: whole_tiles(acts.filled) }
            }

            #[inline(always)]
            fn blocks<const R: usize>(rows: Self::Rows<'_, R>, b: usize) -> [&$form; R] {
                let blocks = rows.blocks[b * rows.step..].first_chunk::<R>();
                blocks.expect("as many rows as there are").each_ref()
            }
        }
    };
}
beside!(Pair, pairs);
beside!(Super, supers);

/// Rows that are handed out one by one.
pub(crate) struct Rows<'a> {
    cols: usize,
    filled: usize,
    pairs_per_row: usize,
    supers_per_row: usize,
    values: Disjoint<'a, f32>,
    pairs: Disjoint<'a, Pair>,
    supers: Disjoint<'a, Super>,
}

impl Rows<'_> {
    /// Tiles of rows that can be written without a line that two of them share.
    pub(crate) fn tiles(&self) -> usize {
        self.filled.div_ceil(ROWS_OF_A_TILE)
    }

    /// The rows of a tile.
    pub(crate) fn of_tile(&self, tile: usize) -> Range<usize> {
        tile * ROWS_OF_A_TILE..self.filled.min((tile + 1) * ROWS_OF_A_TILE)
    }

    /// Row `i`.
    ///
    /// # Safety
    /// A row may be held only once at a time.
    pub(crate) unsafe fn row(&self, i: usize) -> Row<'_> {
        // SAFETY: the caller holds this row once.
        unsafe { self.run(i, 0..self.cols) }
    }

    /// The values `range` of row `i`: whole blocks of 256, but for the end of the row.
    ///
    /// # Safety
    /// A block may be held only once at a time.
    pub(crate) unsafe fn run(&self, i: usize, range: Range<usize>) -> Row<'_> {
        let whole = range.end.is_multiple_of(256) || range.end == self.cols;
        assert!(range.start.is_multiple_of(256) && whole, "a run cuts a block of 256");
        let start = i * self.cols;
        // SAFETY: rows do not overlap, and the caller holds these values once.
        let values = unsafe { self.values.part(start + range.start..start + range.end) };
        Row { values, rows: self, i, first: range.start }
    }
}

/// One row or a run of it, to be written: fill `values`, then call `quantise`.
pub(crate) struct Row<'a> {
    pub(crate) values: &'a mut [f32],
    rows: &'a Rows<'a>,
    i: usize,
    first: usize,
}

struct Quantise<'a>(Row<'a>);

impl Kernel for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        self.0.quantise(s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_the_bytes_that_are_told_before() {
        for (int8x32, int8x256) in [(false, false), (true, false), (false, true), (true, true)] {
            let forms = Forms { int8x32, int8x256 };
            for cols in [32, 96, 256, 896] {
                for rows in [3, 4] {
                    let acts = Acts::new(rows, cols, forms);
                    assert_eq!(acts.bytes(), Acts::bytes_for(rows, cols, forms));
                }
            }
        }
    }
}
