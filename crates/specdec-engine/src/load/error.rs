//! What can be wrong with a model file.

use super::TemplateError;
use std::{io, path::PathBuf};

/// Why a model file was refused. Offsets are bytes from the start of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The path names nothing.
    #[error("no such model file: {}; check the path or fetch the model first", path.display())]
    NotFound {
        /// Path as given.
        path: PathBuf,
    },
    /// The path names a pipe, a device, or a folder without a model.
    #[error(
        "{} is neither a regular file nor a folder with config.json; give the path of a .gguf file \
         or of such a folder", path.display()
    )]
    NotAFile {
        /// Path as given.
        path: PathBuf,
    },
    /// The file exists but cannot be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// Path as given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system failed to deliver bytes that the file has.
    #[error("cannot read {field} at byte {offset}: {source}")]
    Read {
        /// Where the read began.
        offset: u64,
        /// What was being read.
        field: String,
        /// What the system said.
        source: io::Error,
    },
    /// The first four bytes are not `GGUF`.
    #[error("not a GGUF file: it begins with {found:02x?}{hint}; give a file in GGUF format")]
    NotGguf {
        /// First four bytes.
        found: [u8; 4],
        /// What those bytes usually mean, or nothing.
        hint: &'static str,
    },
    /// The file was written for big-endian machines.
    #[error("the GGUF file is big-endian; convert it to little-endian")]
    BigEndian,
    /// A GGUF version this reader does not know.
    #[error("GGUF version {found} is not supported; versions 2 and 3 are, convert the file again")]
    Version {
        /// Version in the file.
        found: u32,
    },
    /// The file ends before what it announces.
    #[error(
        "{field} at byte {offset} needs {needed} bytes, but the file has {size}: it is truncated \
         or damaged, fetch it again"
    )]
    Truncated {
        /// Where the field begins.
        offset: u64,
        /// What was being read.
        field: String,
        /// Bytes the field takes, or the least it can take.
        needed: u64,
        /// Size of the file.
        size: u64,
    },
    /// A count or a length beyond what any sound file has.
    #[error("{field} at byte {offset} is {found}, expected {expected}: the file is damaged")]
    OutOfRange {
        /// Where the field begins.
        offset: u64,
        /// What was being read.
        field: String,
        /// Value in the file.
        found: u64,
        /// The values allowed.
        expected: &'static str,
    },
    /// A metadata value of a type that GGUF does not define, or a nested array.
    #[error(
        "{field} at byte {offset} is {found}, which is no type this reader knows; the file is \
         damaged, fetch it again"
    )]
    ValueType {
        /// Where the type stands.
        offset: u64,
        /// What was being read.
        field: String,
        /// Type number in the file.
        found: u32,
    },
    /// Text that is not UTF-8.
    #[error("{field} at byte {offset} is not valid UTF-8; the file is damaged, fetch it again")]
    Utf8 {
        /// Where the text begins.
        offset: u64,
        /// What was being read.
        field: String,
    },
    /// Two metadata entries or two tensors of one name.
    #[error("{field} at byte {offset} repeats the name {name:?}: readers would disagree on it")]
    Duplicate {
        /// Where the second one stands.
        offset: u64,
        /// `"key"` or `"tensor name"`.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// `general.alignment` is not a power of two in [8, 65536].
    #[error(
        "general.alignment is {found}, expected a power of two from 8 to 65536: the file is damaged"
    )]
    Alignment {
        /// Value in the file.
        found: u64,
    },
    /// A tensor of a format with unknown block size.
    #[error(
        "tensor {name:?} has the unknown type {found} (byte {offset}); convert the model to one \
         of the formats that are read"
    )]
    TensorType {
        /// Where the type stands.
        offset: u64,
        /// Tensor.
        name: String,
        /// Type number in the file.
        found: u32,
    },
    /// Dimensions that are zero, overflow, or do not fill whole blocks.
    #[error("tensor {name:?} has dimensions {dims:?}: {reason}")]
    TensorDims {
        /// Tensor.
        name: String,
        /// Dimensions, innermost first.
        dims: Vec<u64>,
        /// The rule that is broken.
        reason: &'static str,
    },
    /// A tensor that begins at an unaligned place.
    #[error(
        "tensor {name:?} begins at data offset {offset}, no multiple of {alignment}: the file is \
         damaged"
    )]
    TensorAlignment {
        /// Tensor.
        name: String,
        /// Offset in the data section.
        offset: u64,
        /// Alignment of the file.
        alignment: u64,
    },
    /// A tensor that reaches beyond the end of the file.
    #[error(
        "tensor {name:?} ({bytes} bytes from byte {offset}) reaches beyond the file of {size} \
         bytes: it is truncated, fetch it again"
    )]
    TensorOutside {
        /// Tensor.
        name: String,
        /// Where it begins.
        offset: u64,
        /// How long it is.
        bytes: u64,
        /// Size of the file.
        size: u64,
    },
    /// A JSON file of a model folder, or the header of its weights, that cannot be used.
    #[error("{file}: {message}; the file is damaged or of another kind, fetch it again")]
    Json {
        /// File in the folder.
        file: String,
        /// What is wrong with it.
        message: String,
    },
    /// Two tensors that share bytes.
    #[error("tensors {first:?} and {second:?} overlap in the file: it is damaged, fetch it again")]
    TensorOverlap {
        /// The one that begins first.
        first: String,
        /// The one that begins inside it.
        second: String,
    },
    /// A metadata entry that the model needs is not there.
    #[error("the file has no metadata key {key:?}; convert the model again")]
    MissingKey {
        /// Key.
        key: String,
    },
    /// A metadata entry of another type than expected.
    #[error("metadata key {key:?} is {found}, expected {expected}; convert the model again")]
    KeyType {
        /// Key.
        key: String,
        /// Type in the file.
        found: &'static str,
        /// Type expected.
        expected: &'static str,
    },
    /// A metadata entry whose value contradicts the rest of the file.
    #[error("metadata key {key:?} is {found}, expected {expected}; convert the model again")]
    KeyValue {
        /// Key.
        key: String,
        /// Value in the file.
        found: String,
        /// Values that would do.
        expected: String,
    },
    /// An architecture that has no decoder here.
    #[error("architecture {found:?} is not supported; use a model of one of these: {supported}")]
    Architecture {
        /// `general.architecture` of the file.
        found: String,
        /// The ones that are, comma-separated.
        supported: String,
    },
    /// A feature that the file asks for and the decoder lacks.
    #[error("{field} = {found} is not supported yet; use a model without it")]
    Unsupported {
        /// Metadata key or tensor.
        field: String,
        /// Value in the file.
        found: String,
    },
    /// A tensor that the architecture needs is not there.
    #[error(
        "the model has no tensor {name:?}, which its architecture needs; fetch or convert it again"
    )]
    MissingTensor {
        /// Tensor.
        name: String,
    },
    /// A tensor that the decoder would leave out; leaving it out would change the model.
    #[error(
        "the file has a tensor {name:?} that architecture {architecture:?} does not use; without \
         it this would be another model, so convert it again"
    )]
    UnknownTensor {
        /// Tensor.
        name: String,
        /// Architecture of the file.
        architecture: &'static str,
    },
    /// A tensor of another shape than the configuration demands.
    #[error(
        "tensor {name:?} has dimensions {found:?}, but the configuration demands {expected:?}; \
         configuration and weights are of different models, fetch both again"
    )]
    TensorShape {
        /// Tensor.
        name: String,
        /// Dimensions in the file, innermost first.
        found: Vec<u64>,
        /// Dimensions that the configuration demands.
        expected: Vec<u64>,
    },
    /// A tokenizer that has no code here.
    #[error("{key} {found:?} is not supported; use a model with one of these: {supported}")]
    Tokenizer {
        /// Metadata key that names it.
        key: &'static str,
        /// Value in the file.
        found: String,
        /// The ones that are, comma-separated.
        supported: String,
    },
    /// A token that cannot be part of the vocabulary.
    #[error("token {id} {reason}: the vocabulary is damaged")]
    Token {
        /// Token.
        id: u32,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A merge that contradicts the vocabulary.
    #[error("merge {rank} {reason}: the vocabulary is damaged")]
    Merge {
        /// Place in the list of merges.
        rank: u32,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A chat template that does not compile.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl LoadError {
    /// Whether the path names nothing, as against a file that is refused.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}
