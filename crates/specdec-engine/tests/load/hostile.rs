//! Headers that lie. Each has its error, and none makes the reader panic or take memory it has no
//! bytes for.

use specdec_engine::load::gguf::Header;

/// Bytes of a file, written piece by piece.
#[derive(Clone)]
struct Raw(Vec<u8>);

impl Raw {
    /// Magic, version and the two counts.
    fn new(tensors: u64, entries: u64) -> Self {
        Self(b"GGUF\x03\0\0\0".to_vec()).u64(tensors).u64(entries)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn text(self, text: &[u8]) -> Self {
        self.u64(text.len() as u64).bytes(text)
    }

    /// Key and type of an entry; its value follows.
    fn entry(self, key: &[u8], kind: u32) -> Self {
        self.text(key).u32(kind)
    }

    fn tensor(self, name: &[u8], dims: &[u64], kind: u32, offset: u64) -> Self {
        let start = self.text(name).u32(dims.len() as u32);
        dims.iter().fold(start, |raw, &dim| raw.u64(dim)).u32(kind).u64(offset)
    }

    /// Padding, then so many bytes of data.
    fn data(mut self, length: usize) -> Vec<u8> {
        let start = self.0.len().next_multiple_of(32);
        self.0.resize(start + length, 0);
        self.0
    }

    /// An entry of 8 bytes, so that a count is not refused for want of bytes.
    fn room(self) -> Vec<u8> {
        self.data(64)
    }
}

/// One tensor with these properties and 1024 bytes of data.
fn one(dims: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    Raw::new(1, 0).tensor(b"t", dims, kind, offset).data(1024)
}

/// Two F32 tensors of 64 bytes at these offsets.
fn two(names: [&[u8]; 2], offsets: [u64; 2]) -> Vec<u8> {
    Raw::new(2, 0)
        .tensor(names[0], &[16], 0, offsets[0])
        .tensor(names[1], &[16], 0, offsets[1])
        .data(1024)
}

/// `general.alignment` of a type and value.
fn alignment(kind: u32, value: &[u8]) -> Vec<u8> {
    Raw::new(0, 1).entry(b"general.alignment", kind).bytes(value).room()
}

const MAX: u64 = u64::MAX;

/// What is wrong, the bytes, and how the debug form of the error begins.
type Lie = (&'static str, Vec<u8>, &'static str);

#[rustfmt::skip]
fn beginnings() -> Vec<Lie> {
    let head = |bytes: &[u8]| bytes.to_vec();
    vec![
        ("no bytes", head(b""), r#"Truncated { offset: 0, field: "magic""#),
        ("half a magic", head(b"GG"), r#"Truncated { offset: 0, field: "magic""#),
        ("other magic", head(b"GGUfxxxx"), "NotGguf"),
        ("zip", head(b"PK\x03\x04xxxx"), r#"NotGguf { found: [80, 75, 3, 4], hint: " (a zip"#),
        ("pickle", head(b"\x80\x02}q"), r#"NotGguf { found: [128, 2, 125, 113], hint: " (a Python"#),
        ("pointer file", head(b"version https://git-lfs"), "NotGguf"),
        ("web page", head(b"<!DOCTYPE html>"), "NotGguf"),
        ("old ggml", head(b"lmgg\0\0\0\0"), "NotGguf"),
        ("no version", head(b"GGUF\x03\0"), r#"Truncated { offset: 4, field: "version""#),
        ("version 0", head(b"GGUF\0\0\0\0"), "Version { found: 0"),
        ("version 1", head(b"GGUF\x01\0\0\0"), "Version { found: 1"),
        ("version 4", head(b"GGUF\x04\0\0\0"), "Version { found: 4"),
        ("big-endian", head(b"GGUF\0\0\0\x03"), "BigEndian"),
        ("no counts", head(b"GGUF\x03\0\0\0"), "Truncated { offset: 8"),
        ("2^64 - 1 tensors", Raw::new(MAX, 0).room(), "OutOfRange { offset: 8"),
        ("2^16 tensors", Raw::new(1 << 16, 0).room(), "Truncated { offset: 16"),
        ("2^64 - 1 entries", Raw::new(0, MAX).room(), "OutOfRange { offset: 16"),
        ("2^16 entries", Raw::new(0, 1 << 16).room(), "Truncated { offset: 24"),
        ("more entries than bytes", Raw::new(0, 6).room(), "Truncated { offset: 24"),
    ]
}

#[rustfmt::skip]
fn entries() -> Vec<Lie> {
    let key = |key: &[u8], kind| Raw::new(0, 1).entry(key, kind);
    let long = [b'k'; 257];
    vec![
        ("key of 2^64 - 1 bytes", Raw::new(0, 1).u64(MAX).room(), "OutOfRange { offset: 24"),
        ("key of 0 bytes", key(b"", 4).room(), "OutOfRange { offset: 24"),
        ("key of 257 bytes", key(&long, 4).room(), "OutOfRange { offset: 24"),
        ("key beyond the file", Raw::new(0, 1).u64(200).room(), "Truncated { offset: 32"),
        ("key not UTF-8", key(b"\xff\xfe", 4).room(), "Utf8 { offset: 24"),
        ("key cut in a character", key(b"a\xc3", 4).room(), "Utf8 { offset: 24"),
        ("a key twice", Raw::new(0, 2).entry(b"k", 4).u32(1).entry(b"k", 4).u32(1).room(), "Duplicate { offset: 41, field: \"key\""),
        ("type 13", key(b"k", 13).room(), "ValueType { offset: 33"),
        ("type 2^32 - 1", key(b"k", u32::MAX).room(), "ValueType { offset: 33"),
        ("boolean 2", key(b"k", 7).bytes(&[2]).room(), "OutOfRange { offset: 37"),
        ("string of 2^64 - 1 bytes", key(b"k", 8).u64(MAX).room(), "OutOfRange { offset: 37"),
        ("string of 2^24 bytes", key(b"k", 8).u64(1 << 24).room(), "Truncated { offset: 45"),
        ("value missing", key(b"k", 12).0, "Truncated { offset: 24"),
        ("element type 9: nested", key(b"k", 9).u32(9).u64(1).room(), "ValueType { offset: 37"),
        ("element type 99", key(b"k", 9).u32(99).u64(1).room(), "ValueType { offset: 37"),
        ("2^64 - 1 elements", key(b"k", 9).u32(0).u64(MAX).room(), "OutOfRange { offset: 41"),
        ("2^61 + 1 elements of 8 bytes", key(b"k", 9).u32(10).u64((1 << 61) + 1).room(), "OutOfRange { offset: 41"),
        ("2^24 elements", key(b"k", 9).u32(10).u64(1 << 24).room(), "Truncated { offset: 49"),
        ("one element too many", key(b"k", 9).u32(0).u64(80).room(), "Truncated { offset: 49"),
        ("2^24 strings", key(b"k", 9).u32(8).u64(1 << 24).room(), "Truncated { offset: 49"),
        ("string in array too long", key(b"k", 9).u32(8).u64(1).u64(90).room(), "Truncated { offset: 57"),
        ("string in array huge", key(b"k", 9).u32(8).u64(1).u64(MAX).room(), "OutOfRange { offset: 49"),
        ("boolean 7 in array", key(b"k", 9).u32(7).u64(2).bytes(&[1, 7]).room(), "OutOfRange { offset: 49"),
        ("alignment 0", alignment(4, &[0, 0, 0, 0]), "Alignment { found: 0"),
        ("alignment 3", alignment(4, &[3, 0, 0, 0]), "Alignment { found: 3"),
        ("alignment 4", alignment(4, &[4, 0, 0, 0]), "Alignment { found: 4"),
        ("alignment 48", alignment(4, &[48, 0, 0, 0]), "Alignment { found: 48"),
        ("alignment 131072", alignment(4, &[0, 0, 2, 0]), "Alignment { found: 131072"),
        ("alignment as text", alignment(8, b"\x02\0\0\0\0\0\0\x0032"), r#"KeyType { key: "general.alignment""#),
        ("alignment as float", alignment(6, &32f32.to_le_bytes()), r#"KeyType { key: "general.alignment""#),
        ("negative alignment", alignment(5, &[255; 4]), r#"KeyType { key: "general.alignment""#),
    ]
}

#[rustfmt::skip]
fn tensors() -> Vec<Lie> {
    let long = [b'n'; 257];
    vec![
        ("tensor without a name", Raw::new(1, 0).tensor(b"", &[16], 0, 0).data(64), "OutOfRange { offset: 24"),
        ("name of 257 bytes", Raw::new(1, 0).tensor(&long, &[16], 0, 0).data(64), "OutOfRange { offset: 24"),
        ("name not UTF-8", Raw::new(1, 0).tensor(b"\xf0\x9f", &[16], 0, 0).data(64), "Utf8 { offset: 24"),
        ("no dimensions", one(&[], 0, 0), "OutOfRange { offset: 33"),
        ("five dimensions", one(&[1; 5], 0, 0), "OutOfRange { offset: 33"),
        ("2^32 - 1 dimensions", Raw::new(1, 0).text(b"t").u32(u32::MAX).data(64), "OutOfRange { offset: 33"),
        ("dimension 0", one(&[16, 0], 0, 0), "TensorDims"),
        ("first dimension 0", one(&[0, 16], 12, 0), "TensorDims"),
        ("product 2^64", one(&[1 << 32, 1 << 32], 0, 0), "TensorDims"),
        ("product 2^65 - 2", one(&[MAX, 2], 0, 0), "TensorDims"),
        ("product 2^63", one(&[1 << 62, 2], 24, 0), "TensorDims"),
        ("bytes beyond 2^63", one(&[1 << 62], 0, 0), "TensorDims"),
        ("wraps to a small product", one(&[1 << 33, 1 << 31, 1, 3], 0, 0), "TensorDims"),
        ("half a block", one(&[16], 8, 0), "TensorDims"),
        ("no multiple of 256", one(&[255, 2], 12, 0), "TensorDims"),
        ("type 4, withdrawn", one(&[32], 4, 0), "TensorType { offset: 45"),
        ("type 1000", one(&[32], 1000, 0), "TensorType { offset: 45"),
        ("type 2^32 - 1", one(&[32], u32::MAX, 0), "TensorType { offset: 45"),
        ("unaligned", one(&[16], 0, 8), "TensorAlignment"),
        ("offset 2^64 - 32", one(&[16], 0, MAX - 31), "TensorOutside"),
        ("starts behind the end", one(&[16], 0, 1024), "TensorOutside"),
        ("ends behind the end", one(&[257], 0, 0), "TensorOutside"),
        ("exabytes", one(&[1 << 60], 0, 0), "TensorOutside"),
        ("overlap", two([b"a", b"b"], [0, 32]), r#"TensorOverlap { first: "a", second: "b""#),
        ("overlap, later first", two([b"a", b"b"], [32, 0]), r#"TensorOverlap { first: "b", second: "a""#),
        ("the same bytes", two([b"a", b"b"], [64, 64]), "TensorOverlap"),
        ("a name twice", two([b"a", b"a"], [0, 64]), "Duplicate { offset: 57, field: \"tensor name\""),
    ]
}

#[test]
fn each_lie_has_its_error() {
    let cases = [beginnings(), entries(), tensors()].concat();
    assert!(cases.len() >= 60);
    for (wrong, bytes, expected) in cases {
        let error = format!("{:?}", Header::read(bytes.as_slice()).unwrap_err());
        assert!(error.starts_with(expected), "{wrong}: {error} instead of {expected}");
    }
}
