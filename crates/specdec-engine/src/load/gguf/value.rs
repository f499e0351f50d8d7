//! Metadata values, kept compactly: an array is one buffer of bytes, whatever its length.

use super::{
    cursor::{Cursor, Limit},
    field::Field,
    source::ReadAt,
};
use crate::load::LoadError;

/// Longest string: chat templates, the longest ones in use, have some 20 kB.
const STRING: Limit = Limit { low: 0, high: 1 << 24, words: "at most 16 MiB" };
/// Longest array: the largest vocabularies have some 300,000 tokens.
const ARRAY: Limit = Limit { low: 0, high: 1 << 24, words: "at most 2^24 elements" };

/// The number types of GGUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scalar {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    U64,
    I64,
    F64,
}

impl Scalar {
    fn from_id(id: u32) -> Option<Self> {
        Some(match id {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Decodes `self.bytes()` little-endian bytes.
    fn decode(self, bytes: &[u8]) -> Value {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Value::Unsigned(bits),
            Self::I8 => Value::Signed((bits as u8 as i8).into()),
            Self::I16 => Value::Signed((bits as u16 as i16).into()),
            Self::I32 => Value::Signed((bits as u32 as i32).into()),
            Self::I64 => Value::Signed(bits as i64),
            Self::F32 => Value::Float(f32::from_bits(bits as u32).into()),
            Self::F64 => Value::Float(f64::from_bits(bits)),
            Self::Bool => Value::Bool(bits != 0),
        }
    }
}

const STRING_ID: u32 = 8;
const ARRAY_ID: u32 = 9;

/// One metadata value. Integers and floats are widened, which loses nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// u8 to u64.
    Unsigned(u64),
    /// i8 to i64.
    Signed(i64),
    /// f32 or f64.
    Float(f64),
    /// A byte 0 or 1.
    Bool(bool),
    /// Bytes; UTF-8 is checked where text is asked for.
    String(Box<[u8]>),
    /// Array of strings.
    Strings(Strings),
    /// Array of numbers or booleans.
    Numbers(Numbers),
}

impl Value {
    /// An array of strings.
    pub(crate) fn strings<'a>(items: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut strings = Strings::default();
        for item in items {
            strings.bytes.extend_from_slice(item);
            strings.ends.push(strings.bytes.len());
        }
        Self::Strings(strings)
    }

    /// An array of numbers.
    pub(crate) fn floats(items: &[f32]) -> Self {
        let bytes = items.iter().flat_map(|item| item.to_le_bytes()).collect();
        Self::Numbers(Numbers { scalar: Scalar::F32, bytes })
    }

    /// An array of integers.
    pub(crate) fn integers(items: &[i64]) -> Self {
        let bytes = items.iter().flat_map(|item| item.to_le_bytes()).collect();
        Self::Numbers(Numbers { scalar: Scalar::I64, bytes })
    }

    /// The type in words, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Unsigned(_) => "an unsigned integer",
            Self::Signed(_) => "a signed integer",
            Self::Float(_) => "a float",
            Self::Bool(_) => "a boolean",
            Self::String(_) => "a string",
            Self::Strings(_) => "an array of strings",
            Self::Numbers(_) => "an array of numbers",
        }
    }

    pub(super) fn read<S: ReadAt + ?Sized>(
        cursor: &mut Cursor<'_, S>,
        key: &str,
    ) -> Result<Self, LoadError> {
        let offset = cursor.offset();
        let id = cursor.u32(Field::ValueType(key))?;
        match id {
            STRING_ID => Ok(Self::String(cursor.string(STRING, Field::Value(key))?.into())),
            ARRAY_ID => read_array(cursor, key),
            _ => read_scalar(cursor, key, id, offset),
        }
    }
}

fn read_scalar<S: ReadAt + ?Sized>(
    cursor: &mut Cursor<'_, S>,
    key: &str,
    id: u32,
    offset: u64,
) -> Result<Value, LoadError> {
    let Some(scalar) = Scalar::from_id(id) else {
        let field = Field::ValueType(key).to_string();
        return Err(LoadError::ValueType { offset, field, found: id });
    };
    let offset = cursor.offset();
    let bytes = cursor.take(scalar.bytes() as u64, Field::Value(key))?;
    check_bools(scalar, bytes, offset, Field::Value(key))?;
    Ok(scalar.decode(bytes))
}

fn read_array<S: ReadAt + ?Sized>(
    cursor: &mut Cursor<'_, S>,
    key: &str,
) -> Result<Value, LoadError> {
    let offset = cursor.offset();
    let id = cursor.u32(Field::ElementType(key))?;
    if id == STRING_ID {
        return Ok(Value::Strings(Strings::read(cursor, key)?));
    }
    let Some(scalar) = Scalar::from_id(id) else {
        let field = Field::ElementType(key).to_string();
        return Err(LoadError::ValueType { offset, field, found: id });
    };
    let width = scalar.bytes() as u64;
    let count = cursor.count(width, ARRAY, Field::Length(key))?;
    let offset = cursor.offset();
    let bytes: Box<[u8]> = cursor.take(count * width, Field::Value(key))?.into();
    check_bools(scalar, &bytes, offset, Field::Value(key))?;
    Ok(Value::Numbers(Numbers { scalar, bytes }))
}

/// A boolean is 0 or 1; anything else is a sign of damage.
fn check_bools(
    scalar: Scalar,
    bytes: &[u8],
    offset: u64,
    field: Field<'_>,
) -> Result<(), LoadError> {
    const BOOL: Limit = Limit { low: 0, high: 1, words: "a boolean 0 or 1" };
    if scalar != Scalar::Bool {
        return Ok(());
    }
    bytes.iter().try_for_each(|&byte| BOOL.check(byte.into(), offset, field))
}

/// An array of strings: all bytes in one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    bytes: Vec<u8>,
    /// `ends[i]` is where string i ends in `bytes`.
    ends: Vec<usize>,
}

impl Strings {
    fn read<S: ReadAt + ?Sized>(cursor: &mut Cursor<'_, S>, key: &str) -> Result<Self, LoadError> {
        let count = cursor.count(8, ARRAY, Field::Length(key))?;
        let mut strings = Self { bytes: Vec::new(), ends: Vec::with_capacity(count as usize) };
        for index in 0..count {
            let string = cursor.string(STRING, Field::Element(key, index))?;
            strings.bytes.extend_from_slice(string);
            strings.ends.push(strings.bytes.len());
        }
        Ok(strings)
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// String `index`.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.bytes[start..end])
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }
}

/// An array of numbers, kept as the file's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    scalar: Scalar,
    bytes: Box<[u8]>,
}

impl Numbers {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.scalar.bytes()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// All elements in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value> {
        self.bytes.chunks_exact(self.scalar.bytes()).map(|bytes| self.scalar.decode(bytes))
    }
}

/// A Rust type that a metadata value can be read as.
pub trait FromValue<'a>: Sized {
    /// The type in words, for messages.
    const EXPECTED: &'static str;

    /// The value, if it has this type and fits.
    fn from_value(value: &'a Value) -> Option<Self>;
}

macro_rules! from_value {
    ($type:ty, $expected:literal, $value:ident => $body:expr) => {
        impl<'a> FromValue<'a> for $type {
            const EXPECTED: &'static str = $expected;
            fn from_value($value: &'a Value) -> Option<Self> {
                $body
            }
        }
    };
}

from_value!(u32, "an unsigned 32-bit integer", value => match *value {
    Value::Unsigned(n) => n.try_into().ok(),
    Value::Signed(n) => n.try_into().ok(),
    _ => None,
});
from_value!(f32, "a float", value => match *value {
    Value::Float(x) => Some(x as f32),
    _ => None,
});
from_value!(bool, "a boolean", value => match *value {
    Value::Bool(b) => Some(b),
    _ => None,
});
from_value!(&'a str, "a UTF-8 string", value => match value {
    Value::String(bytes) => std::str::from_utf8(bytes).ok(),
    _ => None,
});
from_value!(&'a Strings, "an array of strings", value => match value {
    Value::Strings(strings) => Some(strings),
    _ => None,
});
from_value!(&'a Numbers, "an array of numbers", value => match value {
    Value::Numbers(numbers) => Some(numbers),
    _ => None,
});
