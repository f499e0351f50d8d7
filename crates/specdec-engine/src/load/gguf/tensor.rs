//! Tensor infos: shape, format, place; and the proof that they fit together.

use super::{
    cursor::{Cursor, Limit},
    field::Field,
    source::ReadAt,
    types::TensorType,
};
use crate::load::LoadError;

/// Real names have at most 64 bytes (ggml's `GGML_MAX_NAME`).
const NAME: Limit = Limit { low: 1, high: 256, words: "a name of 1 to 256 bytes" };
const DIMS: Limit = Limit { low: 1, high: 4, words: "1 to 4" };

/// Least bytes of a tensor info: name length, a byte of name, one dimension, type, offset.
pub(super) const LEAST_BYTES: u64 = 8 + 1 + 4 + 8 + 4 + 8;

/// One tensor of the file. All of it lies inside the file and shares no byte with another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, unique in the file.
    pub name: String,
    /// Format of its values.
    pub kind: &'static TensorType,
    /// Dimensions, innermost (columns) first: 1 to 4 of them, each at least 1.
    pub dims: Vec<u64>,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Length in bytes: rows x bytes of a row.
    pub bytes: u64,
}

impl TensorInfo {
    /// Values in a row: the innermost dimension.
    pub fn cols(&self) -> u64 {
        self.dims[0]
    }

    /// Number of rows: the product of the other dimensions.
    pub fn rows(&self) -> u64 {
        self.dims[1..].iter().product()
    }

    /// Reads one info; its offset is still relative to the data section.
    pub(super) fn read<S: ReadAt + ?Sized>(
        cursor: &mut Cursor<'_, S>,
        index: u64,
    ) -> Result<Self, LoadError> {
        let name = cursor.text(NAME, Field::TensorName(index))?;
        let at = cursor.offset();
        let count = cursor.u32(Field::DimCount(&name))?;
        DIMS.check(count.into(), at, Field::DimCount(&name))?;
        let mut dims = Vec::with_capacity(count as usize);
        for _ in 0..count {
            dims.push(cursor.u64(Field::Dims(&name))?);
        }
        let at = cursor.offset();
        let found = cursor.u32(Field::TensorKind(&name))?;
        let offset = cursor.u64(Field::TensorOffset(&name))?;
        let Some(kind) = TensorType::from_id(found) else {
            return Err(LoadError::TensorType { offset: at, name, found });
        };
        match byte_length(kind, &dims) {
            Ok(bytes) => Ok(Self { name, kind, dims, offset, bytes }),
            Err(reason) => Err(LoadError::TensorDims { name, dims, reason }),
        }
    }

    /// Makes the offset absolute and checks that the tensor is aligned and inside the file.
    pub(super) fn place(&mut self, data: u64, alignment: u64, size: u64) -> Result<(), LoadError> {
        if !self.offset.is_multiple_of(alignment) {
            return Err(LoadError::TensorAlignment {
                name: self.name.clone(),
                offset: self.offset,
                alignment,
            });
        }
        let offset = data.saturating_add(self.offset);
        match offset.checked_add(self.bytes) {
            Some(end) if end <= size => self.offset = offset,
            _ => {
                return Err(LoadError::TensorOutside {
                    name: self.name.clone(),
                    offset,
                    bytes: self.bytes,
                    size,
                });
            }
        }
        Ok(())
    }
}

/// Bytes of a tensor, or the rule that its dimensions break. Products stay within `i64`, as ggml
/// counts elements.
fn byte_length(kind: &TensorType, dims: &[u64]) -> Result<u64, &'static str> {
    const TOO_MANY: &str = "their product is beyond 2^63";
    if dims.contains(&0) {
        return Err("each must be at least 1");
    }
    let values = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).ok_or(TOO_MANY)?;
    let row = kind.row_bytes(dims[0]).ok_or("the first is no multiple of the format's block")?;
    (values / dims[0])
        .checked_mul(row)
        .filter(|&bytes| i64::try_from(values.max(bytes)).is_ok())
        .ok_or(TOO_MANY)
}

/// Fails if two tensors share a byte.
pub(super) fn check_overlap(tensors: &[TensorInfo]) -> Result<(), LoadError> {
    let mut order: Vec<&TensorInfo> = tensors.iter().collect();
    order.sort_by_key(|tensor| tensor.offset);
    for pair in order.windows(2) {
        if pair[0].offset + pair[0].bytes > pair[1].offset {
            return Err(LoadError::TensorOverlap {
                first: pair[0].name.clone(),
                second: pair[1].name.clone(),
            });
        }
    }
    Ok(())
}
