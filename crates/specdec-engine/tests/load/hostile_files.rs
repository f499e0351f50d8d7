//! A thousand malformed models, each with its typed error, in a process of its own under limits of
//! memory and time.

use crate::child;
use specdec_engine::load::{ChatTemplate, Gguf, LoadError, ModelConfig, Tokenizer};
use specdec_testkit::hostile::{Hostile, folders, ggufs};
use std::{path::Path, sync::Arc};

fn cases() -> Vec<Hostile> {
    [ggufs(), folders()].concat()
}

/// All that is read before the first weight is.
fn load(path: &Path) -> Result<(), LoadError> {
    let file = Gguf::open(path)?;
    let tokenizer = Arc::new(Tokenizer::from_gguf(file.header())?);
    ChatTemplate::from_gguf(file.header(), tokenizer)?;
    ModelConfig::from_gguf(file.header())?;
    Ok(())
}

fn outcome(case: &Hostile) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in &case.files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let single = case.files[0].0 == "model.gguf";
    let path = if single { folder.path().join("model.gguf") } else { folder.path().to_owned() };
    format!("{:?}", load(&path))
}

/// What the child process does.
#[test]
#[ignore = "runs in a child process of the next test"]
fn child_loads() {
    for (number, case) in cases().iter().enumerate() {
        child::report(number, || outcome(case));
    }
}

/// Of the addresses between 512 and 768 MiB are taken by the cases themselves, which the child makes
/// and keeps, by the test's own threads, and by the stack of a template; so what one file may take is
/// bounded loosely. The seconds are for all files together.
#[test]
fn every_malformed_model_has_its_error() {
    let cases = cases();
    assert!(cases.len() >= 1000, "{}", cases.len());
    let outcomes = child::run("hostile_files::child_loads", 1 << 30, 120);
    assert_eq!(outcomes.len(), cases.len(), "the child ended early");
    let wrong: Vec<_> = cases
        .iter()
        .zip(&outcomes)
        .filter(|(case, found)| !case.is_met_by(found))
        .map(|(case, found)| format!("{}: {found} instead of {}", case.name, case.expected))
        .collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), cases.len());
}
