//! GGUF (little-endian, versions 2 and 3), the container format of ggml:
//! `magic, version, tensor count, entry count, entries, tensor infos, padding, tensor data`.
//!
//! The reader trusts nothing: every count and length is compared with the bytes that are there
//! before memory is taken for it, so its memory is bounded by the size of the header. Files are
//! read by position, never mapped: a file that shrinks is an error, not a signal.

mod cursor;
mod field;
mod header;
mod source;
mod tensor;
mod types;
mod value;

pub use header::Header;
pub use source::ReadAt;
pub use tensor::TensorInfo;
pub use types::TensorType;
pub use value::{FromValue, Numbers, Strings, Value};

use super::LoadError;
use field::Field;
use std::{
    fs::File,
    io::{self, ErrorKind},
    num::NonZero,
    ops::Range,
    path::{Path, PathBuf},
    thread,
};

/// An open model: its checked header, and its tensors on demand. A GGUF file, or a folder of
/// transformers whose files say the same in other words.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    files: Vec<File>,
    /// File of each tensor of the header.
    homes: Vec<usize>,
    header: Header,
}

impl Gguf {
    /// Opens a model file, or a folder with `config.json`, and checks what it says of itself.
    ///
    /// # Errors
    /// [`LoadError::NotFound`], [`LoadError::NotAFile`], or whatever is wrong with a header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref().to_path_buf();
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::NotFound => LoadError::NotFound { path: path.clone() },
            _ => LoadError::Open { path: path.clone(), source },
        };
        // Asked before opening: to open a pipe would wait for its writer.
        let kind = std::fs::metadata(&path).map_err(failed)?;
        if kind.is_dir() {
            return super::folder::open(&path);
        }
        if !kind.is_file() {
            return Err(LoadError::NotAFile { path });
        }
        let file = File::open(&path).map_err(failed)?;
        let header = Header::read(&file)?;
        let homes = vec![0; header.tensors().len()];
        Ok(Self { path, files: vec![file], homes, header })
    }

    /// A model in several files; `homes` names the file of each tensor of the header.
    pub(super) fn from_parts(
        path: &Path,
        files: Vec<File>,
        homes: Vec<usize>,
        header: Header,
    ) -> Self {
        Self { path: path.to_path_buf(), files, homes, header }
    }

    /// The path as given to [`Gguf::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The checked header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reads the bytes `range` of a tensor, as they stand in the file, into `bytes` (replaced; its
    /// capacity is reused). Large ranges are read by several threads: from the page cache, one
    /// copies no faster than it could pack.
    ///
    /// # Errors
    /// [`LoadError::Read`] if the file has changed since its header was read, or the disk fails.
    pub fn read_bytes(
        &self,
        tensor: &TensorInfo,
        range: Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), LoadError> {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        bytes.resize(length, 0);
        let offset = tensor.offset + range.start;
        let failed = |source| {
            let field = Field::Data(&tensor.name).to_string();
            LoadError::Read { offset, field, source }
        };
        let home = self.header.place(&tensor.name).map(|place| self.homes[place]);
        let file = &self.files[home.ok_or_else(|| failed(ErrorKind::NotFound.into()))?];
        read_pieces(file, bytes, offset).map_err(failed)
    }
}

/// Bytes that are worth a thread.
const PIECE: usize = 4 << 20;

/// Fills `bytes` from `offset` on.
fn read_pieces(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let piece = bytes.len().div_ceil(threads).max(PIECE);
    thread::scope(|scope| {
        let mut pieces = bytes.chunks_mut(piece).zip((offset..).step_by(piece));
        let own = pieces.next();
        let others: Vec<_> = pieces
            .map(|(bytes, offset)| {
                let read = move || file.read_exact_at(bytes, offset);
                thread::Builder::new().spawn_scoped(scope, read)
            })
            .collect();
        let mut read = own.map_or(Ok(()), |(bytes, offset)| file.read_exact_at(bytes, offset));
        for thread in others {
            let panicked = |_| Err(io::Error::other("a reading thread panicked"));
            read = read.and(thread.and_then(|thread| thread.join().unwrap_or_else(panicked)));
        }
        read
    })
}
