//! Quantised matrices, packed for the kernels.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::cpu::Cpu;
use crate::disjoint::Disjoint;
use crate::format::{F32, Format, Q4_1, Q4K, Q5_0, Q6K, Q8_0, Quant};
use crate::layout::{Layout, ROWS};
use crate::memory::Buffer;
use crate::pool::PoolError;

/// A matrix of quantised weights in the layout of the kernels.
///
/// Rows are padded to a multiple of 16 with zeros that no result shows. The codes are those of the
/// file: nothing is rounded again.
pub struct Matrix {
    rows: usize,
    cols: usize,
    groups: Groups,
}

/// Panels one after the other, each a row of groups.
pub(crate) enum Groups {
    F32(Buffer<<F32 as Layout>::Group>),
    Q4_1(Buffer<<Q4_1 as Layout>::Group>),
    Q5_0(Buffer<<Q5_0 as Layout>::Group>),
    Q8_0(Buffer<<Q8_0 as Layout>::Group>),
    Q4K(Buffer<<Q4K as Layout>::Group>),
    Q6K(Buffer<<Q6K as Layout>::Group>),
}

/// Evaluates an expression with a matrix's groups and the type of their format.
macro_rules! by_groups {
    ($groups:expr, $name:ident: $quant:ident => $body:expr) => {
        match $groups {
            $crate::matrix::Groups::F32($name) => by_groups!(@ F32, $quant, $body),
            $crate::matrix::Groups::Q4_1($name) => by_groups!(@ Q4_1, $quant, $body),
            $crate::matrix::Groups::Q5_0($name) => by_groups!(@ Q5_0, $quant, $body),
            $crate::matrix::Groups::Q8_0($name) => by_groups!(@ Q8_0, $quant, $body),
            $crate::matrix::Groups::Q4K($name) => by_groups!(@ Q4K, $quant, $body),
            $crate::matrix::Groups::Q6K($name) => by_groups!(@ Q6K, $quant, $body),
        }
    };
    (@ $type:ident, $quant:ident, $body:expr) => {{
        type $quant = $crate::format::$type;
        $body
    }};
}
pub(crate) use by_groups;

/// Why weights were refused.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// The bytes of a tensor are not as many as its shape needs.
    #[error(
        "{rows} x {cols} weights of {format} take {expected} bytes, {found} were given; \
         the file is cut off or its header wrong"
    )]
    Length {
        /// Format of the weights.
        format: Format,
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        cols: usize,
        /// Bytes given.
        found: usize,
        /// Bytes needed.
        expected: usize,
    },
    /// Rows are empty or no whole number of blocks.
    #[error("rows of {cols} weights are no whole blocks of {format}: use a multiple of {block}")]
    Columns {
        /// Format of the weights.
        format: Format,
        /// Columns asked for.
        cols: usize,
        /// Weights of a block.
        block: usize,
    },
    /// A scale, or a weight of F32, is infinite or not a number.
    #[error("row {row} has a weight or scale that is not finite; the file is damaged")]
    NotFinite {
        /// First such row.
        row: usize,
    },
    /// The matrix does not fit into memory, or its size into a number.
    #[error("no memory for {rows} x {cols} weights of {format}; use a smaller model")]
    Memory {
        /// Format of the weights.
        format: Format,
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        cols: usize,
    },
    /// `dequantise` was given room for another number of weights than there are.
    #[error(
        "{bytes} bytes of {format} do not make {out} weights: \
         pass whole blocks and room for their weights"
    )]
    Output {
        /// Format of the bytes.
        format: Format,
        /// Bytes given.
        bytes: usize,
        /// Weights asked for.
        out: usize,
    },
    /// The threads that pack failed.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

impl Matrix {
    /// Packs a tensor of `rows` x `cols` weights; `raw` are its bytes in the file, row by row.
    ///
    /// # Errors
    /// `Columns` if `cols` is 0 or no multiple of the format's block, `Length` if `raw` has another
    /// size, `NotFinite` for a damaged weight or scale, `Memory` if there is none, `Pool` as
    /// [`crate::Pool::run`].
    pub fn pack(
        cpu: &Cpu,
        format: Format,
        rows: usize,
        cols: usize,
        raw: &[u8],
    ) -> Result<Matrix, MatrixError> {
        let block = format.block_len();
        if cols == 0 || !cols.is_multiple_of(block) {
            return Err(MatrixError::Columns { format, cols, block });
        }
        let expected = format.row_bytes(cols).and_then(|bytes| bytes.checked_mul(rows));
        let expected = expected.ok_or(MatrixError::Memory { format, rows, cols })?;
        if raw.len() != expected {
            let found = raw.len();
            return Err(MatrixError::Length { format, rows, cols, found, expected });
        }
        let source = Source { format, rows, cols, raw };
        let groups = match format {
            Format::F32 => Groups::F32(source.pack::<F32>(cpu)?),
            Format::Q4_1 => Groups::Q4_1(source.pack::<Q4_1>(cpu)?),
            Format::Q5_0 => Groups::Q5_0(source.pack::<Q5_0>(cpu)?),
            Format::Q8_0 => Groups::Q8_0(source.pack::<Q8_0>(cpu)?),
            Format::Q4K => Groups::Q4K(source.pack::<Q4K>(cpu)?),
            Format::Q6K => Groups::Q6K(source.pack::<Q6K>(cpu)?),
        };
        Ok(Matrix { rows, cols, groups })
    }

    /// Output elements.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Input elements.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Format of the weights.
    pub fn format(&self) -> Format {
        by_groups!(&self.groups, _groups: Q => Q::FORMAT)
    }

    /// Bytes of memory that the weights keep.
    pub fn bytes(&self) -> usize {
        by_groups!(&self.groups, groups: Q => Buffer::<<Q as Layout>::Group>::bytes(groups))
    }

    /// The weights of a row, bit-equal to [`crate::dequantise`] of the file's row.
    ///
    /// # Panics
    /// If there is no such row or `out` is not `cols` long.
    pub fn dequantise_row(&self, row: usize, out: &mut [f32]) {
        assert!(row < self.rows, "row {row} of a matrix of {} rows", self.rows);
        assert_eq!(out.len(), self.cols, "room for a row");
        by_groups!(&self.groups, groups: Q => {
            let per_panel = Q::groups(self.cols);
            let panel = &groups[row / ROWS * per_panel..][..per_panel];
            for (group, out) in panel.iter().zip(out.chunks_mut(Q::LEN * Q::BLOCKS)) {
                for (at, out) in out.chunks_mut(Q::LEN).enumerate() {
                    Q::values(&Q::extract(group, at, row % ROWS), out);
                }
            }
        });
    }

    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }
}

/// A checked tensor.
struct Source<'a> {
    format: Format,
    rows: usize,
    cols: usize,
    raw: &'a [u8],
}

impl Source<'_> {
    /// Packs panel by panel on all threads.
    fn pack<Q: Layout>(&self, cpu: &Cpu) -> Result<Buffer<Q::Group>, MatrixError> {
        let panels = self.rows.div_ceil(ROWS);
        let per_panel = Q::groups(self.cols);
        let room = panels.checked_mul(per_panel).and_then(|len| cpu.weights.room(len));
        let Source { format, rows, cols, .. } = *self;
        let mut room = room.ok_or(MatrixError::Memory { format, rows, cols })?;
        let damaged = AtomicUsize::new(usize::MAX);
        let parts = Disjoint::new(&mut room);
        cpu.pool.run(panels, &|panel| {
            // SAFETY: every tile takes its own panel.
            let groups = unsafe { parts.part(panel * per_panel..(panel + 1) * per_panel) };
            if let Err(row) = self.pack_panel::<Q>(panel, groups) {
                damaged.fetch_min(row, Relaxed);
            }
        })?;
        match damaged.into_inner() {
            // SAFETY: every panel was packed, to its end where no row was damaged.
            usize::MAX => Ok(unsafe { room.assume_init() }),
            row => Err(MatrixError::NotFinite { row }),
        }
    }

    /// Packs sixteen rows, or what is left of them; gives the first damaged row.
    fn pack_panel<Q: Layout>(
        &self,
        panel: usize,
        groups: &mut [MaybeUninit<Q::Group>],
    ) -> Result<(), usize> {
        let bytes = self.format.block_bytes();
        let blocks = self.cols / Q::LEN;
        let rows = panel * ROWS..self.rows.min((panel + 1) * ROWS);
        let mut damaged = usize::MAX;
        for (g, group) in groups.iter_mut().enumerate() {
            let mut packed = Q::ZERO;
            for row in rows.clone() {
                for at in 0..Q::BLOCKS.min(blocks - g * Q::BLOCKS) {
                    let start = (row * blocks + g * Q::BLOCKS + at) * bytes;
                    let block = Q::read(&self.raw[start..start + bytes]);
                    if !Q::finite(&block) {
                        damaged = damaged.min(row);
                    }
                    Q::insert(&mut packed, at, row % ROWS, &block);
                }
            }
            group.write(packed);
        }
        if damaged == usize::MAX { Ok(()) } else { Err(damaged) }
    }
}
