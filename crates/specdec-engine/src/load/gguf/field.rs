//! What a byte of the file belongs to, for error messages.

use std::fmt;

/// A place in the file, named. Formatted only when an error is made.
#[derive(Clone, Copy)]
pub(super) enum Field<'a> {
    Magic,
    Version,
    TensorCount,
    EntryCount,
    Key(u64),
    ValueType(&'a str),
    ElementType(&'a str),
    Length(&'a str),
    Value(&'a str),
    Element(&'a str, u64),
    TensorName(u64),
    DimCount(&'a str),
    Dims(&'a str),
    TensorKind(&'a str),
    TensorOffset(&'a str),
    Data(&'a str),
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Magic => write!(f, "magic"),
            Self::Version => write!(f, "version"),
            Self::TensorCount => write!(f, "number of tensors"),
            Self::EntryCount => write!(f, "number of metadata entries"),
            Self::Key(i) => write!(f, "key of metadata entry {i}"),
            Self::ValueType(key) => write!(f, "type of {key:?}"),
            Self::ElementType(key) => write!(f, "element type of {key:?}"),
            Self::Length(key) => write!(f, "length of {key:?}"),
            Self::Value(key) => write!(f, "value of {key:?}"),
            Self::Element(key, i) => write!(f, "element {i} of {key:?}"),
            Self::TensorName(i) => write!(f, "name of tensor {i}"),
            Self::DimCount(name) => write!(f, "number of dimensions of tensor {name:?}"),
            Self::Dims(name) => write!(f, "dimensions of tensor {name:?}"),
            Self::TensorKind(name) => write!(f, "type of tensor {name:?}"),
            Self::TensorOffset(name) => write!(f, "offset of tensor {name:?}"),
            Self::Data(name) => write!(f, "data of tensor {name:?}"),
        }
    }
}
