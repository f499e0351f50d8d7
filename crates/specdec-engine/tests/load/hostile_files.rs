//! A thousand malformed models, each with its typed error, in a process of its own under limits of
//! memory and time.

use crate::child;
use specdec_engine::load::{ChatTemplate, Gguf, LoadError, ModelConfig, Tokenizer};
use specdec_testkit::hostile::{Hostile, folders, ggufs, large};
use std::{path::Path, sync::Arc};

/// All cases, made when their turn comes: together they are half a gigabyte.
fn cases() -> impl Iterator<Item = Hostile> {
    [ggufs, folders, large].into_iter().flat_map(|make| make())
}

/// What a file may take while it is read, beside as many bytes as it has.
const MEMORY: u64 = 64 << 20;
const MILLIS: u64 = 1000;

/// All that is read before the first weight is.
fn load(path: &Path) -> Result<(), LoadError> {
    let file = Gguf::open(path)?;
    let tokenizer = Arc::new(Tokenizer::from_gguf(file.header())?);
    ChatTemplate::from_gguf(file.header(), tokenizer)?;
    ModelConfig::from_gguf(file.header())?;
    Ok(())
}

fn report(number: usize, case: &Hostile) {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in &case.files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let single = case.files[0].0 == "model.gguf";
    let path = if single { folder.path().join("model.gguf") } else { folder.path().to_owned() };
    child::report(number, || format!("{:?}", load(&path)));
}

/// What the child process does.
#[test]
#[ignore = "runs in a child process of the next test"]
fn child_loads() {
    for (number, case) in cases().enumerate() {
        report(number, &case);
    }
}

#[test]
fn every_malformed_model_has_its_error_at_its_price() {
    let reports = child::run("hostile_files::child_loads", 1 << 30, 300);
    let mut wrong = Vec::new();
    let mut count = 0;
    for (case, report) in cases().zip(&reports) {
        let name = &case.name;
        let size: usize = case.files.iter().map(|(_, bytes)| bytes.len()).sum();
        if !case.is_met_by(&report.text) {
            wrong.push(format!("{name}: {} instead of {}", report.text, case.expected));
        }
        if report.bytes > size as u64 + MEMORY {
            wrong.push(format!("{name}: {size} bytes of files took {}", report.bytes));
        }
        if report.millis > MILLIS {
            wrong.push(format!("{name}: took {} ms of processor time", report.millis));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} of {count}: {wrong:#?}", wrong.len());
    assert_eq!(reports.len(), count, "the child ended early");
    assert_eq!(count, cases().count());
    assert!(count >= 1000, "{count}");
}
