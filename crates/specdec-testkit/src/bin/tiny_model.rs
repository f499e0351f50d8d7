//! Writes a tiny random model, so that tests in other languages can have one.
//!
//! Every field of the recipe is a flag: `tiny-model --out m.gguf --arch qwen2 --seed 3 --tied false
//! --formats '{"ffn_down": "q6_k"}'`; `--recipe FILE` takes the fields from a JSON file instead,
//! `--fault nan-weight` plants a fault, and `--folder F` in place of `--out` writes the model as
//! transformers does.

use std::{error::Error, process::ExitCode};

use serde_json::{Map, Value};
use specdec_testkit::folder::Dtype;
use specdec_testkit::gguf::{Fault, TinyModel};

const USAGE: &str = "usage: tiny-model (--out FILE | --folder FOLDER) [--recipe JSON-FILE] [--fault NAME] [--FIELD VALUE]...
fields: arch seed layers hidden heads kv_heads head_dim ffn vocab tied rope_base context norm_eps pre
        spread format formats (an object of role: format)";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tiny-model: {error}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let (mut out, mut folder, mut fault, mut fields) = (None, None, None, Map::new());
    while let Some(flag) = arguments.next() {
        let name = flag.strip_prefix("--").ok_or_else(|| format!("unexpected {flag:?}"))?;
        let value = arguments.next().ok_or_else(|| format!("no value after {flag}"))?;
        match name {
            "out" => out = Some(value),
            "folder" => folder = Some(value),
            "fault" => fault = Some(serde_json::from_value::<Fault>(Value::String(value))?),
            "recipe" => fields.extend(serde_json::from_str::<Map<_, _>>(&read(&value)?)?),
            field => drop(fields.insert(field.to_owned(), parse(value))),
        }
    }
    let model: TinyModel = serde_json::from_value(Value::Object(fields))?;
    if let Some(folder) = folder {
        std::fs::create_dir_all(&folder)?;
        specdec_testkit::folder::write(&model, folder.as_ref(), Dtype::F32, 2);
        return Ok(());
    }
    let out = out.ok_or("no --out")?;
    let bytes = match fault {
        Some(fault) => fault.plant(&model)?,
        None => model.gguf()?.to_bytes(),
    };
    std::fs::write(&out, bytes).map_err(|error| format!("cannot write {out}: {error}"))?;
    Ok(())
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))
}

/// Numbers, booleans and objects are themselves; anything else is text.
fn parse(value: String) -> Value {
    serde_json::from_str(&value).unwrap_or(Value::String(value))
}
