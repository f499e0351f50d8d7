//! Writes what the fuzz targets begin with: `fuzz-corpus FOLDER` fills `FOLDER/TARGET/` with sound
//! and malformed inputs of each target.

use std::{fs, io, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("usage: fuzz-corpus FOLDER");
        return ExitCode::FAILURE;
    };
    match write(folder.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fuzz-corpus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    for (target, inputs) in specdec_testkit::hostile::corpus()? {
        let folder = folder.join(target);
        fs::create_dir_all(&folder)?;
        for (number, bytes) in inputs.iter().enumerate() {
            fs::write(folder.join(format!("given-{number:03}")), bytes)?;
        }
    }
    Ok(())
}
