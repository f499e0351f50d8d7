//! GGUF files of every family with one thing wrong.

use super::{Hostile, small};
use crate::gguf::{Gguf, TinyModel, Value};

/// Malformed GGUF files.
///
/// # Panics
/// Never: the recipes are right.
pub fn ggufs() -> Vec<Hostile> {
    let mut cases = Vec::new();
    for model in TinyModel::families().map(small) {
        let file = model.gguf().unwrap_or_else(|error| panic!("{error}"));
        let arch = model.arch.name();
        wrong_types(&file, arch, &mut cases);
        wrong_values(&file, arch, &mut cases);
        missing_keys(&file, arch, &mut cases);
        wrong_tensors(&file, arch, &mut cases);
    }
    let file = small(TinyModel::llama()).gguf().unwrap_or_else(|error| panic!("{error}"));
    cut(&file, &mut cases);
    cases
}

pub(super) fn case(name: String, bytes: Vec<u8>, expected: String) -> Hostile {
    Hostile { name, files: vec![("model.gguf".to_owned(), bytes)], expected }
}

/// The file cut at many places of its header, and in its data.
fn cut(file: &Gguf, cases: &mut Vec<Hostile>) {
    let bytes = file.to_bytes();
    let data: usize =
        file.tensors.iter().map(|tensor| tensor.data.len().next_multiple_of(32)).sum();
    let header = bytes.len() - data;
    for length in (0..header).step_by(header / 400) {
        let expected = "Truncated|TensorOutside".to_owned();
        cases.push(case(format!("cut to {length} bytes"), bytes[..length].to_vec(), expected));
    }
    for part in 0..20 {
        let length = header + data * part / 20;
        let expected = "TensorOutside".to_owned();
        cases.push(case(format!("cut to {length} bytes"), bytes[..length].to_vec(), expected));
    }
}

const SIZES: [&str; 6] = [
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
];
const NUMBERS: [&str; 2] = ["rope.freq_base", "attention.layer_norm_rms_epsilon"];
const TEXTS: [&str; 4] = [
    "general.architecture",
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.chat_template",
];
const ARRAYS: [&str; 3] =
    ["tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type"];
const IDS: [&str; 2] = ["tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"];

fn wrong_types(file: &Gguf, arch: &str, cases: &mut Vec<Hostile>) {
    let text = || Value::from("2");
    let list = || Value::Array(vec![Value::U32(1); 3]);
    let own = |keys: &[&str]| keys.iter().map(|key| format!("{arch}.{key}")).collect::<Vec<_>>();
    let foreign = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>();
    let unsigned = [
        Value::F32(2.0),
        Value::F64(2.0),
        Value::Bool(true),
        text(),
        list(),
        Value::I32(-1),
        Value::I64(i64::MIN),
        Value::U64(u64::MAX),
    ];
    let float = [Value::U32(2), Value::I8(1), Value::Bool(true), text(), list()];
    let string = [Value::U32(2), Value::F32(1.0), Value::Bool(false), list()];
    let array = [Value::U32(2), Value::F64(f64::NAN), Value::Bool(true), text()];
    let table: [(Vec<String>, &[Value]); 5] = [
        (own(&SIZES), &unsigned),
        (own(&NUMBERS), &float),
        (foreign(&TEXTS), &string),
        (foreign(&ARRAYS), &array),
        (foreign(&IDS), &unsigned),
    ];
    for (keys, values) in table {
        for key in keys {
            for value in values {
                let mut wrong = file.clone();
                wrong.set(&key, value.clone());
                let expected = format!("KeyType {{ key: {key:?}");
                cases.push(case(format!("{key} = {value:?}"), wrong.to_bytes(), expected));
            }
        }
    }
}

fn wrong_values(file: &Gguf, arch: &str, cases: &mut Vec<Hostile>) {
    let mut push = |key: String, value: Value, expected: String| {
        let mut wrong = file.clone();
        wrong.set(&key, value.clone());
        cases.push(case(format!("{key} = {value:?}"), wrong.to_bytes(), expected));
    };
    for size in SIZES {
        let key = format!("{arch}.{size}");
        let out_of_range = format!("KeyValue {{ key: {key:?}");
        push(key.clone(), Value::U32(0), out_of_range.clone());
        push(key, Value::U32(u32::MAX), out_of_range);
    }
    for number in NUMBERS {
        for value in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let key = format!("{arch}.{number}");
            let expected = format!("KeyValue {{ key: {key:?}");
            push(key, Value::F32(value), expected);
        }
    }
    for id in IDS {
        let expected = format!("KeyValue {{ key: {id:?}");
        push(id.to_owned(), Value::U32(u32::MAX), expected);
    }
    push("general.alignment".to_owned(), Value::U32(0), "Alignment".to_owned());
    push("general.alignment".to_owned(), Value::U32(33), "Alignment".to_owned());
    push("general.architecture".to_owned(), "mamba".into(), "Architecture".to_owned());
    push("tokenizer.ggml.model".to_owned(), "t5".into(), "Tokenizer".to_owned());
    push("tokenizer.ggml.pre".to_owned(), "x".into(), "Tokenizer".to_owned());
    push("tokenizer.chat_template".to_owned(), "{% if %}".into(), "Template(Syntax".to_owned());
    for (name, value) in [
        ("rope.scaling.type", Value::from("longrope")),
        ("expert_count", Value::U32(8)),
        ("final_logit_softcapping", Value::F32(30.0)),
        ("logit_scale", Value::F32(0.5)),
    ] {
        let key = format!("{arch}.{name}");
        let expected = format!("Unsupported {{ field: {key:?}");
        push(key, value, expected);
    }
}

fn missing_keys(file: &Gguf, arch: &str, cases: &mut Vec<Hostile>) {
    let needed = [
        "general.architecture",
        "tokenizer.ggml.model",
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.merges",
    ];
    // Of the sizes only the number of key heads may be missing; then these tensors do not fit it.
    let own = SIZES[..5].iter().map(|key| format!("{arch}.{key}"));
    for key in own.chain(needed.map(str::to_owned)) {
        let mut wrong = file.clone();
        wrong.remove(&key);
        let expected = format!("MissingKey {{ key: {key:?}");
        cases.push(case(format!("{arch} without {key}"), wrong.to_bytes(), expected));
    }
}

fn wrong_tensors(file: &Gguf, arch: &str, cases: &mut Vec<Hostile>) {
    for (number, tensor) in file.tensors.iter().enumerate() {
        let name = &tensor.name;
        let mut push = |what: &str, wrong: &Gguf, expected: String| {
            cases.push(case(format!("{arch}: {name} {what}"), wrong.to_bytes(), expected));
        };
        if name != "output.weight" {
            let mut wrong = file.clone();
            wrong.remove_tensor(name);
            push("missing", &wrong, format!("MissingTensor {{ name: {name:?}"));
        }
        let mut wrong = file.clone();
        wrong.tensors.push(tensor.clone());
        push("twice", &wrong, "Duplicate".to_owned());
        let mut wrong = file.clone();
        wrong.tensors[number].dims.push(2);
        push(
            "of another shape",
            &wrong,
            format!("TensorShape {{ name: {name:?}|TensorOutside|TensorOverlap"),
        );
        let mut wrong = file.clone();
        wrong.tensors[number].dims[0] = 0;
        push("with no columns", &wrong, format!("TensorDims {{ name: {name:?}"));
        let mut wrong = file.clone();
        wrong.tensors[number].name.insert(0, 'x');
        let renamed = format!("MissingTensor {{ name: {name:?}|UnknownTensor {{ name: \"x{name}\"");
        push("renamed", &wrong, renamed);
    }
}
