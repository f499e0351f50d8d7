//! The header as a whole.

use super::{
    cursor::{Cursor, Limit},
    field::Field,
    source::ReadAt,
    tensor::{self, TensorInfo},
    value::{FromValue, Value},
};
use crate::load::LoadError;
use std::collections::{BTreeMap, HashMap, btree_map::Entry};

const KEY: Limit = Limit { low: 1, high: 256, words: "a key of 1 to 256 bytes" };
const ENTRIES: Limit = Limit { low: 0, high: 1 << 16, words: "at most 65536" };
const TENSORS: Limit = Limit { low: 0, high: 1 << 16, words: "at most 65536" };

/// Least bytes of a metadata entry: key length, a byte of key, type, a byte of value.
const LEAST_ENTRY_BYTES: u64 = 8 + 1 + 4 + 1;

const ALIGNMENT_KEY: &str = "general.alignment";
const DEFAULT_ALIGNMENT: u32 = 32;

/// Metadata and tensor infos of a GGUF file, checked against the file and each other.
#[derive(Debug)]
pub struct Header {
    version: u32,
    entries: BTreeMap<String, Value>,
    tensors: Vec<TensorInfo>,
    index: HashMap<String, usize>,
}

impl Header {
    /// Reads and checks a header.
    ///
    /// # Errors
    /// What is wrong, with the offset and the name of the field. Memory never exceeds a small
    /// multiple of the header's bytes, whatever they say.
    pub fn read(source: &(impl ReadAt + ?Sized)) -> Result<Self, LoadError> {
        let mut cursor = Cursor::new(source)?;
        let version = read_version(&mut cursor)?;
        let tensor_count = cursor.count(tensor::LEAST_BYTES, TENSORS, Field::TensorCount)?;
        let entry_count = cursor.count(LEAST_ENTRY_BYTES, ENTRIES, Field::EntryCount)?;
        let entries = read_entries(&mut cursor, entry_count)?;
        let (mut tensors, index) = read_tensors(&mut cursor, tensor_count)?;
        let alignment = alignment(&entries)?;
        let data = cursor.offset().next_multiple_of(alignment);
        for tensor in &mut tensors {
            tensor.place(data, alignment, cursor.size())?;
        }
        tensor::check_overlap(&tensors)?;
        Ok(Self { version, entries, tensors, index })
    }

    /// A header made of what other files say. The tensors have been placed.
    pub(crate) fn from_parts(
        entries: Vec<(String, Value)>,
        tensors: Vec<TensorInfo>,
    ) -> Result<Self, LoadError> {
        let mut index = HashMap::new();
        for (place, tensor) in tensors.iter().enumerate() {
            if index.insert(tensor.name.clone(), place).is_some() {
                let (field, name) = ("tensor name", tensor.name.clone());
                return Err(LoadError::Duplicate { offset: tensor.offset, field, name });
            }
        }
        Ok(Self { version: 3, entries: entries.into_iter().collect(), tensors, index })
    }

    /// Place of a tensor in [`Header::tensors`].
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// Version of the format: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// All metadata, ordered by key.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// All tensors in the order of the file.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of this name, if there is one.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|&index| &self.tensors[index])
    }

    /// The value of a key that may be missing.
    ///
    /// # Errors
    /// [`LoadError::KeyType`] if it is there with another type.
    pub fn find<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>, LoadError> {
        let Some(value) = self.entries.get(key) else { return Ok(None) };
        let wrong = || LoadError::KeyType {
            key: key.to_owned(),
            found: value.type_name(),
            expected: T::EXPECTED,
        };
        T::from_value(value).map(Some).ok_or_else(wrong)
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// [`LoadError::MissingKey`], or [`LoadError::KeyType`] if it has another type.
    pub fn get<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T, LoadError> {
        self.find(key)?.ok_or_else(|| LoadError::MissingKey { key: key.to_owned() })
    }
}

fn read_version<S: ReadAt + ?Sized>(cursor: &mut Cursor<'_, S>) -> Result<u32, LoadError> {
    let found: [u8; 4] = cursor.array(Field::Magic)?;
    if &found != b"GGUF" {
        return Err(LoadError::NotGguf { found, hint: hint(found) });
    }
    let version = cursor.u32(Field::Version)?;
    match version {
        2 | 3 => Ok(version),
        _ if (1..=3).contains(&version.swap_bytes()) => Err(LoadError::BigEndian),
        _ => Err(LoadError::Version { found: version }),
    }
}

/// What other formats begin with.
fn hint(magic: [u8; 4]) -> &'static str {
    match &magic {
        b"PK\x03\x04" => " (a zip archive, perhaps PyTorch weights, which can run code)",
        [0x80, 2..=5, ..] => " (a Python pickle, which can run code)",
        b"lmgg" | b"tjgg" | b"fmgg" => " (an older ggml format)",
        b"vers" => " (a Git LFS pointer instead of the file itself)",
        b"<!DO" | b"<htm" => " (a web page: the download failed)",
        _ => "",
    }
}

fn read_entries<S: ReadAt + ?Sized>(
    cursor: &mut Cursor<'_, S>,
    count: u64,
) -> Result<BTreeMap<String, Value>, LoadError> {
    let mut entries = BTreeMap::new();
    for number in 0..count {
        let offset = cursor.offset();
        let key = cursor.text(KEY, Field::Key(number))?;
        let value = Value::read(cursor, &key)?;
        match entries.entry(key) {
            Entry::Vacant(place) => place.insert(value),
            Entry::Occupied(place) => {
                let name = place.key().clone();
                return Err(LoadError::Duplicate { offset, field: "key", name });
            }
        };
    }
    Ok(entries)
}

type Tensors = (Vec<TensorInfo>, HashMap<String, usize>);

fn read_tensors<S: ReadAt + ?Sized>(
    cursor: &mut Cursor<'_, S>,
    count: u64,
) -> Result<Tensors, LoadError> {
    let (mut tensors, mut index) = Tensors::default();
    for number in 0..count {
        let offset = cursor.offset();
        let tensor = TensorInfo::read(cursor, number)?;
        if index.insert(tensor.name.clone(), tensors.len()).is_some() {
            let name = tensor.name;
            return Err(LoadError::Duplicate { offset, field: "tensor name", name });
        }
        tensors.push(tensor);
    }
    Ok((tensors, index))
}

fn alignment(entries: &BTreeMap<String, Value>) -> Result<u64, LoadError> {
    let found = match entries.get(ALIGNMENT_KEY) {
        None => DEFAULT_ALIGNMENT,
        Some(value) => u32::from_value(value).ok_or_else(|| LoadError::KeyType {
            key: ALIGNMENT_KEY.to_owned(),
            found: value.type_name(),
            expected: u32::EXPECTED,
        })?,
    };
    if found.is_power_of_two() && (8..=65536).contains(&found) {
        Ok(found.into())
    } else {
        Err(LoadError::Alignment { found: found.into() })
    }
}
