//! Quantised matrices, packed for the kernels.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::cpu::Cpu;
use crate::disjoint::Disjoint;
use crate::format::{
    BF16, F16, F32, Format, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0, Quant, Target, dequantise,
    quantise,
};
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

/// Declares [`Groups`] and how they are packed.
macro_rules! groups {
    ($($name:ident)*) => {
        /// Panels one after the other, each a row of groups.
        pub(crate) enum Groups {
            $($name(Buffer<<$name as Layout>::Group>),)*
        }

        impl Groups {
            fn pack(cpu: &Cpu, source: &Source<'_>) -> Result<Groups, MatrixError> {
                Ok(match source.format {
                    $(Format::$name => Groups::$name(source.pack::<$name>(cpu)?),)*
                })
            }

            fn bytes(format: Format, rows: usize, cols: usize) -> Option<usize> {
                let (per_panel, bytes) = match format {
                    $(Format::$name => {
                        ($name::groups(cols), size_of::<<$name as Layout>::Group>())
                    })*
                };
                rows.div_ceil(ROWS).checked_mul(per_panel)?.checked_mul(bytes)
            }
        }
    };
}
groups!(F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4K Q5K Q6K);

/// Evaluates an expression with a matrix's groups and the type of their format.
macro_rules! by_groups {
    ($groups:expr, $name:ident: $quant:ident => $body:expr) => {
        by_groups!(@ $groups, $name, $quant, $body,
            F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4K Q5K Q6K)
    };
    (@ $groups:expr, $name:ident, $quant:ident, $body:expr, $($type:ident)*) => {
        match $groups {
            $($crate::matrix::Groups::$type($name) => {
                type $quant = $crate::format::$type;
                $body
            })*
        }
    };
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
        let groups = Groups::pack(cpu, &Source::check(format, rows, cols, raw)?)?;
        Ok(Matrix { rows, cols, groups })
    }

    /// Packs a tensor as [`Matrix::pack`] does, its weights quantised once more to `to`. The rows of
    /// one panel at a time exist in single precision.
    ///
    /// # Errors
    /// As [`Matrix::pack`], and `Columns` as well if `cols` is no multiple of the target's block.
    pub fn pack_as(
        cpu: &Cpu,
        format: Format,
        rows: usize,
        cols: usize,
        raw: &[u8],
        to: Target,
    ) -> Result<Matrix, MatrixError> {
        let source = Source::check(format, rows, cols, raw)?;
        let (format, block) = (to.format(), to.format().block_len());
        if !cols.is_multiple_of(block) {
            return Err(MatrixError::Columns { format, cols, block });
        }
        let groups = match to {
            Target::Q4_0 => Groups::Q4_0(source.pack_as::<Q4_0>(cpu, to)?),
            Target::Q8_0 => Groups::Q8_0(source.pack_as::<Q8_0>(cpu, to)?),
        };
        Ok(Matrix { rows, cols, groups })
    }

    /// Bytes of memory that packed weights of this shape keep; `None` if that is no number.
    pub fn packed_bytes(format: Format, rows: usize, cols: usize) -> Option<usize> {
        Groups::bytes(format, rows, cols)
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

impl<'a> Source<'a> {
    fn check(
        format: Format,
        rows: usize,
        cols: usize,
        raw: &'a [u8],
    ) -> Result<Source<'a>, MatrixError> {
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
        Ok(Source { format, rows, cols, raw })
    }

    /// Packs panel by panel on all threads.
    fn pack<Q: Layout>(&self, cpu: &Cpu) -> Result<Buffer<Q::Group>, MatrixError> {
        self.panels::<Q>(cpu, &|panel, groups| {
            let rows = panel * ROWS..self.rows.min((panel + 1) * ROWS);
            let row = self.format.row_bytes(self.cols).expect("checked");
            let raw = &self.raw[rows.start * row..rows.end * row];
            pack_panel::<Q>(raw, rows.len(), groups).map_err(|row| rows.start + row)
        })
    }

    /// The same by way of single precision and `to`, whose type is `Q`.
    fn pack_as<Q: Layout>(&self, cpu: &Cpu, to: Target) -> Result<Buffer<Q::Group>, MatrixError> {
        let row = self.format.row_bytes(self.cols).expect("checked");
        let quantised = to.format().row_bytes(self.cols).expect("checked");
        self.panels::<Q>(cpu, &|panel, groups| {
            let rows = panel * ROWS..self.rows.min((panel + 1) * ROWS);
            let mut values = vec![0.0; rows.len() * self.cols];
            let raw = &self.raw[rows.start * row..rows.end * row];
            dequantise(self.format, raw, &mut values).expect("as many as there are");
            if let Some(at) = values.iter().position(|x| !x.is_finite()) {
                return Err(rows.start + at / self.cols);
            }
            let mut raw = vec![0; rows.len() * quantised];
            quantise(cpu.level, to, &values, &mut raw);
            pack_panel::<Q>(&raw, rows.len(), groups).map_err(|row| rows.start + row)
        })
    }

    /// Fills every panel on all threads; `fill` gives the first damaged row of its panel.
    fn panels<Q: Layout>(
        &self,
        cpu: &Cpu,
        fill: &Fill<'_, Q::Group>,
    ) -> Result<Buffer<Q::Group>, MatrixError> {
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
            if let Err(row) = fill(panel, groups) {
                damaged.fetch_min(row, Relaxed);
            }
        })?;
        match damaged.into_inner() {
            // SAFETY: every panel was packed, to its end where no row was damaged.
            usize::MAX => Ok(unsafe { room.assume_init() }),
            row => Err(MatrixError::NotFinite { row }),
        }
    }
}

/// Fills the groups of a panel, or gives its first damaged row.
type Fill<'a, G> = dyn Fn(usize, &mut [MaybeUninit<G>]) -> Result<(), usize> + Sync + 'a;

/// Packs up to sixteen rows of file bytes; gives the first damaged one.
fn pack_panel<Q: Layout>(
    raw: &[u8],
    rows: usize,
    groups: &mut [MaybeUninit<Q::Group>],
) -> Result<(), usize> {
    let bytes = Q::FORMAT.block_bytes();
    let blocks = raw.len() / bytes / rows;
    let mut damaged = usize::MAX;
    for (g, group) in groups.iter_mut().enumerate() {
        let mut packed = Q::ZERO;
        for row in 0..rows {
            for at in 0..Q::BLOCKS.min(blocks - g * Q::BLOCKS) {
                let start = (row * blocks + g * Q::BLOCKS + at) * bytes;
                let block = Q::read(&raw[start..start + bytes]);
                if !Q::finite(&block) {
                    damaged = damaged.min(row);
                }
                Q::insert(&mut packed, at, row, &block);
            }
        }
        group.write(packed);
    }
    if damaged == usize::MAX { Ok(()) } else { Err(damaged) }
}
