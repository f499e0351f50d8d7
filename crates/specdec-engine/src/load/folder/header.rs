//! The header of a safetensors file: eight bytes of length, then JSON that says of each tensor its
//! number type, its shape and its bytes. Checked as strictly as a GGUF header.

use super::json::Pairs;
use crate::load::{
    LoadError,
    gguf::{ReadAt, TensorInfo, TensorType},
};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

/// Longest header, as the safetensors library has it.
const MAX_HEADER: u64 = 100 << 20;

/// Most tensors of a file, as in GGUF.
pub(super) const MAX_TENSORS: usize = 1 << 16;

/// Longest text of one tensor's entry.
const MAX_ENTRY: usize = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// What stands under a name: a tensor, or texts about the file, which nobody here reads.
enum Item {
    Tensor(Entry),
    Metadata,
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        let entry = match text.get(..=MAX_ENTRY) {
            // Read as a structure, a list would pass for the fields in their order.
            None if text.starts_with('{') => serde_json::from_str(text).map_err(D::Error::custom),
            None => Err(D::Error::custom("an entry that is no object")),
            Some(_) => Err(D::Error::custom("an entry of more than 4096 bytes")),
        };
        entry.map(Self::Tensor).or_else(|error| {
            let texts = serde_json::from_str::<Pairs<String, MAX_TENSORS>>(text);
            texts.map(|_| Self::Metadata).map_err(|_| error)
        })
    }
}

/// The tensors of a file, named as it names them, innermost dimension first.
pub(super) fn read(
    source: &(impl ReadAt + ?Sized),
    path: &str,
) -> Result<Vec<TensorInfo>, LoadError> {
    let failed = |offset, source| LoadError::Read { offset, field: path.to_owned(), source };
    let size = source.size().map_err(|error| failed(0, error))?;
    let truncated = |needed| LoadError::Truncated {
        offset: 0,
        field: format!("the header of {path}"),
        needed,
        size,
    };
    if size < 8 {
        return Err(truncated(8));
    }
    let mut length = [0; 8];
    source.read_exact_at(&mut length, 0).map_err(|error| failed(0, error))?;
    let magic = length;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER {
        refuse_pickle(magic, path)?;
        return Err(LoadError::OutOfRange {
            offset: 0,
            field: format!("length of the header of {path}"),
            found: length,
            expected: "at most 100 MiB",
        });
    }
    let data = 8 + length;
    if data > size {
        return Err(truncated(data));
    }
    let mut text = vec![0; length as usize];
    source.read_exact_at(&mut text, 8).map_err(|error| failed(8, error))?;
    let items: Pairs<Item, MAX_TENSORS> = super::json::parse(&text, path)?;
    let mut tensors = Vec::new();
    for (name, item) in items.0 {
        match item {
            Item::Tensor(entry) => tensors.push(tensor(name, &entry, data, size)?),
            Item::Metadata if name == "__metadata__" => {}
            Item::Metadata => return Err(damaged(path, format!("{name:?} is no tensor"))),
        }
    }
    check_tiling(&mut tensors, data, size, path)?;
    Ok(tensors)
}

/// `PyTorch` weights are code that runs when they are read. As a length their first bytes are beyond
/// all measure.
fn refuse_pickle(magic: [u8; 8], path: &str) -> Result<(), LoadError> {
    if magic.starts_with(b"PK\x03\x04") || matches!(magic, [0x80, 2..=5, ..]) {
        return Err(damaged(path, "it holds a Python pickle, which can run code".to_owned()));
    }
    Ok(())
}

pub(super) fn damaged(path: &str, what: String) -> LoadError {
    LoadError::Json { file: path.to_owned(), message: what }
}

fn tensor(name: String, entry: &Entry, data: u64, size: u64) -> Result<TensorInfo, LoadError> {
    let id = match entry.dtype.as_str() {
        "F32" => 0,
        "F16" => 1,
        "BF16" => 30,
        other => {
            return Err(LoadError::Unsupported { field: name, found: format!("the type {other}") });
        }
    };
    if name.is_empty() || name.len() > 256 {
        return Err(LoadError::TensorDims {
            name,
            dims: Vec::new(),
            reason: "a name of 1 to 256 bytes",
        });
    }
    let mut dims = entry.shape.clone();
    dims.reverse();
    let wrong = |reason| LoadError::TensorDims { name: name.clone(), dims: dims.clone(), reason };
    if dims.is_empty() || dims.len() > 4 || dims.contains(&0) {
        return Err(wrong("1 to 4 of them are expected, each at least 1"));
    }
    let kind = TensorType::from_id(id).ok_or_else(|| wrong("an unknown type"))?;
    let count = dims.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim));
    let bytes = count.and_then(|count| count.checked_mul(kind.block_bytes));
    let bytes = bytes.filter(|&bytes| i64::try_from(bytes).is_ok());
    let bytes = bytes.ok_or_else(|| wrong("their product is beyond 2^63"))?;
    let [start, end] = entry.data_offsets;
    if end.checked_sub(start) != Some(bytes) {
        return Err(wrong("data_offsets hold another number of bytes"));
    }
    let offset = data.saturating_add(start);
    if offset.checked_add(bytes).is_none_or(|end| end > size) {
        return Err(LoadError::TensorOutside { name, offset, bytes, size });
    }
    Ok(TensorInfo { name, kind, dims, offset, bytes })
}

/// The tensors fill the file: what lies between them would be read by one reader and not by another.
fn check_tiling(
    tensors: &mut [TensorInfo],
    data: u64,
    size: u64,
    path: &str,
) -> Result<(), LoadError> {
    tensors.sort_by_key(|tensor| tensor.offset);
    let mut next = data;
    let mut before = String::new();
    for tensor in tensors {
        if tensor.offset < next {
            let (first, second) = (before, tensor.name.clone());
            return Err(LoadError::TensorOverlap { first, second });
        }
        if tensor.offset > next {
            let message = format!("bytes {next} to {} belong to no tensor", tensor.offset);
            return Err(damaged(path, message));
        }
        next = tensor.offset + tensor.bytes;
        before.clone_from(&tensor.name);
    }
    if next == size {
        Ok(())
    } else {
        Err(damaged(path, format!("bytes from {next} on are no tensor's")))
    }
}
