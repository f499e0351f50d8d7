//! A GGUF version 3 file in memory: ordered metadata and tensors, open to any change a test wants.
//!
//! Layout (little endian): magic, version, two counts; metadata pairs; tensor headers; padding;
//! tensor data, each tensor padded to the alignment. Dimensions are written innermost first.

use super::Format;

const MAGIC: &[u8; 4] = b"GGUF";
const VERSION: u32 = 3;
const DEFAULT_ALIGNMENT: usize = 32;

/// A metadata value of any kind the format has.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the variants are the format's own kinds")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    Array(Vec<Value>),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl Value {
    fn kind(&self) -> u32 {
        match self {
            Self::U8(_) => 0,
            Self::I8(_) => 1,
            Self::U16(_) => 2,
            Self::I16(_) => 3,
            Self::U32(_) => 4,
            Self::I32(_) => 5,
            Self::F32(_) => 6,
            Self::Bool(_) => 7,
            Self::String(_) => 8,
            Self::Array(_) => 9,
            Self::U64(_) => 10,
            Self::I64(_) => 11,
            Self::F64(_) => 12,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::U8(x) => out.push(*x),
            Self::I8(x) => out.extend(x.to_le_bytes()),
            Self::U16(x) => out.extend(x.to_le_bytes()),
            Self::I16(x) => out.extend(x.to_le_bytes()),
            Self::U32(x) => out.extend(x.to_le_bytes()),
            Self::I32(x) => out.extend(x.to_le_bytes()),
            Self::F32(x) => out.extend(x.to_le_bytes()),
            Self::Bool(x) => out.push(u8::from(*x)),
            Self::String(text) => write_string(out, text),
            Self::Array(items) => {
                // An empty array is written as one of strings: the format needs some kind.
                out.extend(items.first().map_or(8, Self::kind).to_le_bytes());
                out.extend((items.len() as u64).to_le_bytes());
                for item in items {
                    item.write(out);
                }
            }
            Self::U64(x) => out.extend(x.to_le_bytes()),
            Self::I64(x) => out.extend(x.to_le_bytes()),
            Self::F64(x) => out.extend(x.to_le_bytes()),
        }
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// One tensor: a name, a shape and its file bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Name as in the file, with its suffix: `blk.0.attn_q.weight`.
    pub name: String,
    /// Lengths, innermost first: a matrix of `rows x cols` has `[cols, rows]`.
    pub dims: Vec<u64>,
    /// Storage format.
    pub format: Format,
    /// File bytes, rows one after the other.
    pub data: Vec<u8>,
}

/// A file to be written. Nothing is checked: broken files are as welcome as whole ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Gguf {
    /// Metadata in the order of the file.
    pub metadata: Vec<(String, Value)>,
    /// Tensors in the order of the file.
    pub tensors: Vec<Tensor>,
    /// Padding unit of the data section; other than 32 it is also written as a key.
    pub alignment: usize,
}

impl Default for Gguf {
    fn default() -> Self {
        Self { metadata: Vec::new(), tensors: Vec::new(), alignment: DEFAULT_ALIGNMENT }
    }
}

impl Gguf {
    /// Sets `key`, in place where it exists already.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.metadata.iter_mut().find(|(name, _)| name == key) {
            Some(pair) => pair.1 = value,
            None => self.metadata.push((key.to_owned(), value)),
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Drops `key`; false where it is not there.
    pub fn remove(&mut self, key: &str) -> bool {
        let before = self.metadata.len();
        self.metadata.retain(|(name, _)| name != key);
        self.metadata.len() < before
    }

    /// The tensor called `name`, to be changed.
    pub fn tensor_mut(&mut self, name: &str) -> Option<&mut Tensor> {
        self.tensors.iter_mut().find(|tensor| tensor.name == name)
    }

    /// Drops the tensor called `name`; false where it is not there.
    pub fn remove_tensor(&mut self, name: &str) -> bool {
        let before = self.tensors.len();
        self.tensors.retain(|tensor| tensor.name != name);
        self.tensors.len() < before
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.header();
        for tensor in &self.tensors {
            out.extend(&tensor.data);
            self.pad(&mut out);
        }
        out
    }

    /// Everything before the data section, padded.
    fn header(&self) -> Vec<u8> {
        let mut metadata = self.metadata.clone();
        if self.alignment != DEFAULT_ALIGNMENT {
            metadata.push(("general.alignment".to_owned(), Value::U32(self.alignment as u32)));
        }
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((metadata.len() as u64).to_le_bytes());
        for (key, value) in &metadata {
            write_string(&mut out, key);
            out.extend(value.kind().to_le_bytes());
            value.write(&mut out);
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            write_string(&mut out, &tensor.name);
            out.extend((tensor.dims.len() as u32).to_le_bytes());
            out.extend(tensor.dims.iter().flat_map(|dim| dim.to_le_bytes()));
            out.extend(tensor.format.ggml_type().to_le_bytes());
            out.extend((offset as u64).to_le_bytes());
            offset += tensor.data.len().next_multiple_of(self.alignment);
        }
        self.pad(&mut out);
        out
    }

    fn pad(&self, out: &mut Vec<u8>) {
        out.resize(out.len().next_multiple_of(self.alignment), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_of_a_small_file_byte_by_byte() {
        let mut file = Gguf::default();
        file.set("k", Value::U32(7));
        file.set("k", Value::Array(vec![Value::U8(1), Value::U8(2)]));
        let data = 1.5_f32.to_le_bytes().to_vec();
        file.tensors.push(Tensor { name: "t".into(), dims: vec![1], format: Format::F32, data });
        let mut expected = b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
        expected.extend(b"\x01\0\0\0\0\0\0\0k\x09\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\x02");
        expected.extend(b"\x01\0\0\0\0\0\0\0t\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0");
        expected.extend([0; 8]);
        expected.resize(expected.len().next_multiple_of(32), 0);
        expected.extend(1.5_f32.to_le_bytes());
        expected.resize(expected.len() + 28, 0);
        assert_eq!(file.to_bytes(), expected);
        assert!(file.remove("k") && !file.remove("k"));
        assert!(file.remove_tensor("t") && file.get("k").is_none());
    }
}
