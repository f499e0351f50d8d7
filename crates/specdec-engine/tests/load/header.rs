//! Files as they should be, cut and damaged at every byte.

use specdec_engine::load::{
    Gguf, LoadError,
    gguf::{Header, Numbers, Strings},
};
use specdec_testkit::gguf::{self as kit, Value};

/// A file with an entry of every type and two tensors.
fn whole() -> kit::Gguf {
    let mut file = kit::Gguf::default();
    let strings = ["a", "", "bcd"].map(Value::from).to_vec();
    for (key, value) in [
        ("u8", Value::U8(200)),
        ("i8", Value::I8(-1)),
        ("u16", Value::U16(60_000)),
        ("i16", Value::I16(-2)),
        ("u32", Value::U32(7)),
        ("i32", Value::I32(-3)),
        ("f32", Value::F32(1.5)),
        ("bool", Value::Bool(true)),
        ("text", Value::from("é")),
        ("strings", Value::Array(strings)),
        ("ints", Value::Array(vec![Value::I16(-5), Value::I16(5)])),
        ("bools", Value::Array(vec![Value::Bool(false), Value::Bool(true)])),
        ("u64", Value::U64(1 << 40)),
        ("i64", Value::I64(9)),
        ("f64", Value::F64(0.25)),
    ] {
        file.set(key, value);
    }
    for (name, dims, format, bytes) in
        [("a", vec![32, 3], kit::Format::Q8_0, 102), ("b", vec![5], kit::Format::F32, 20)]
    {
        let data = (0..bytes).collect();
        file.tensors.push(kit::Tensor { name: name.to_owned(), dims, format, data });
    }
    file
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let bytes = whole().to_bytes();
    // The padding behind the last tensor may be missing.
    let end = bytes.len() - 12;
    for length in 0..end {
        let error = Header::read(&bytes[..length]).unwrap_err();
        let fits = matches!(error, LoadError::Truncated { .. } | LoadError::TensorOutside { .. });
        assert!(fits, "{length} bytes: {error:?}");
    }
    Header::read(&bytes[..end]).unwrap();
}

#[test]
fn any_byte_may_be_anything() {
    let mut bytes = whole().to_bytes();
    let mut refused = 0;
    for place in 0..bytes.len() {
        let kept = bytes[place];
        for value in (0..=255).step_by(3).chain([1, 2, 4, 8, 128]) {
            bytes[place] = value;
            refused += usize::from(Header::read(bytes.as_slice()).is_err());
        }
        bytes[place] = kept;
    }
    assert!(refused > 10_000, "{refused}");
    Header::read(bytes.as_slice()).unwrap();
}

#[test]
fn version_2_is_read_like_version_3() {
    let mut bytes = whole().to_bytes();
    bytes[4] = 2;
    assert_eq!(Header::read(bytes.as_slice()).unwrap().version(), 2);
}

#[test]
fn values_have_their_types() {
    let header = Header::read(whole().to_bytes().as_slice()).unwrap();
    for (key, value) in [("u8", 200), ("u16", 60_000), ("u32", 7), ("i64", 9)] {
        assert_eq!(header.get::<u32>(key).unwrap(), value);
    }
    let fractions = ["f32", "f64"].map(|key| header.get::<f32>(key).unwrap());
    assert_eq!(fractions.map(f32::to_bits), [1.5f32, 0.25].map(f32::to_bits));
    assert!(header.get::<bool>("bool").unwrap());
    assert_eq!(header.get::<&str>("text").unwrap(), "é");
    let strings: &Strings = header.get("strings").unwrap();
    assert_eq!(strings.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"bcd"]);
    let numbers: &Numbers = header.get("ints").unwrap();
    assert_eq!(format!("{:?}", numbers.iter().collect::<Vec<_>>()), "[Signed(-5), Signed(5)]");
    assert_eq!(header.entries().count(), 15);
}

#[test]
fn a_missing_key_and_a_wrong_type_name_the_key() {
    let header = Header::read(whole().to_bytes().as_slice()).unwrap();
    let missing = header.get::<u32>("none").unwrap_err();
    assert!(matches!(&missing, LoadError::MissingKey { key } if key == "none"), "{missing:?}");
    assert!(header.find::<u32>("none").unwrap().is_none());
    for key in ["u64", "i8", "f32", "bool", "text", "ints"] {
        let wrong = header.find::<u32>(key).unwrap_err();
        assert!(matches!(&wrong, LoadError::KeyType { key: k, .. } if k == key), "{wrong:?}");
    }
    assert!(header.get::<f32>("u32").is_err() && header.get::<bool>("u8").is_err());
    assert!(header.get::<&Strings>("ints").is_err() && header.get::<&Numbers>("strings").is_err());
}

#[test]
fn tensors_are_read_from_their_place() {
    let path = kit::temp_file_of(&whole().to_bytes());
    let file = Gguf::open(&path).unwrap();
    let mut bytes = vec![9; 7];
    let a = file.header().tensor("a").unwrap();
    assert_eq!((a.kind.name, a.rows(), a.cols(), a.bytes), ("Q8_0", 3, 32, 102));
    file.read_bytes(a, 0..a.bytes, &mut bytes).unwrap();
    assert_eq!(bytes, (0..102).collect::<Vec<u8>>());
    let b = file.header().tensor("b").unwrap();
    file.read_bytes(b, 0..b.bytes, &mut bytes).unwrap();
    assert_eq!(bytes, (0..20).collect::<Vec<u8>>());
    assert!(file.header().tensor("c").is_none());
}

#[test]
fn a_large_tensor_is_read_whole_or_not_at_all() {
    let mut file = kit::Gguf::default();
    // Several pieces, the last one short.
    let (cols, rows) = (1 << 20, 5);
    let data: Vec<u8> = (0..cols * rows * 4).map(|i: u64| (i % 251) as u8).collect();
    let (name, dims, format) = ("big".to_owned(), vec![cols, rows], kit::Format::F32);
    file.tensors.push(kit::Tensor { name, dims, format, data: data.clone() });
    let path = kit::temp_file_of(&file.to_bytes());
    let file = Gguf::open(&path).unwrap();
    let big = file.header().tensor("big").unwrap();
    let mut bytes = Vec::new();
    file.read_bytes(big, 0..big.bytes, &mut bytes).unwrap();
    assert!(bytes == data);
    file.read_bytes(big, 3..big.bytes - 1, &mut bytes).unwrap();
    assert!(bytes == data[3..data.len() - 1]);
    let whole = std::fs::metadata(&path).unwrap().len();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(whole - 1).unwrap();
    let error = file.read_bytes(big, 0..big.bytes, &mut bytes).unwrap_err();
    assert!(matches!(&error, LoadError::Read { .. }), "{error:?}");
}

#[test]
fn a_file_that_shrinks_after_opening_is_an_error() {
    let path = kit::temp_file_of(&whole().to_bytes());
    let file = Gguf::open(&path).unwrap();
    std::fs::write(&path, b"GGUF").unwrap();
    let error = file.read_bytes(&file.header().tensors()[1], 0..20, &mut Vec::new()).unwrap_err();
    assert!(
        matches!(&error, LoadError::Read { field, .. } if field.contains("\"b\"")),
        "{error:?}"
    );
}

#[test]
fn what_is_no_file_is_told_apart() {
    let missing = Gguf::open("/no/such/model.gguf").unwrap_err();
    assert!(missing.is_not_found() && missing.to_string().contains("/no/such/model.gguf"));
    let folder = Gguf::open(std::env::temp_dir()).unwrap_err();
    assert!(matches!(folder, LoadError::NotAFile { .. }) && !folder.is_not_found());
}
