//! Arrays of any floating type, read where they lie.

use half::{bf16, f16};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use specdec_core::primitives::Rows;

use crate::error::ConfigError;

/// An array of rows. `numpy` has no type for `bfloat16`, so 16-bit words stand for it.
#[derive(FromPyObject)]
pub(crate) enum Array<'py> {
    F32(PyReadonlyArray2<'py, f32>),
    F64(PyReadonlyArray2<'py, f64>),
    F16(PyReadonlyArray2<'py, f16>),
    Bf16(PyReadonlyArray2<'py, u16>),
}

impl Array<'_> {
    /// The numbers, which must lie row after row.
    pub(crate) fn numbers(&self) -> PyResult<Numbers<'_>> {
        let ([rows, width], cells) = match self {
            Self::F32(array) => (shape(array), array.as_slice().map(Cells::F32)),
            Self::F64(array) => (shape(array), array.as_slice().map(Cells::F64)),
            Self::F16(array) => (shape(array), array.as_slice().map(Cells::F16)),
            Self::Bf16(array) => (shape(array), array.as_slice().map(Cells::Bf16)),
        };
        let cells = cells.map_err(|_| ConfigError::new_err("an array is not C-contiguous"))?;
        Ok(Numbers { cells, rows, width })
    }
}

fn shape<T: numpy::Element>(array: &PyReadonlyArray2<'_, T>) -> [usize; 2] {
    let (rows, width) = array.as_array().dim();
    [rows, width]
}

/// The numbers of an [`Array`].
pub(crate) struct Numbers<'a> {
    cells: Cells<'a>,
    rows: usize,
    width: usize,
}

enum Cells<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    F16(&'a [f16]),
    Bf16(&'a [u16]),
}

impl Rows for Numbers<'_> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn width(&self) -> usize {
        self.width
    }

    fn rounding(&self) -> f64 {
        match self.cells {
            // A law that a softmax in half precision made and that was widened afterwards.
            Cells::F32(_) | Cells::F64(_) => 1e-3,
            // 2^-9 of every probability in bfloat16; in float16, whose least step is 6e-8, up to
            // half a percent of a law that is spread over 150,000 tokens.
            Cells::F16(_) | Cells::Bf16(_) => 5e-3,
        }
    }

    fn read(&self, row: usize, out: &mut Vec<f64>) {
        let range = row * self.width..(row + 1) * self.width;
        out.clear();
        match self.cells {
            Cells::F32(values) => out.extend(values[range].iter().map(|&x| f64::from(x))),
            Cells::F64(values) => out.extend_from_slice(&values[range]),
            Cells::F16(values) => out.extend(values[range].iter().map(|&x| f64::from(x))),
            Cells::Bf16(words) => {
                out.extend(words[range].iter().map(|&word| f64::from(bf16::from_bits(word))));
            }
        }
    }
}
