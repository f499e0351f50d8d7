//! Models with one fault each, for tests of what a loader refuses.

use std::io::Write as _;

use half::f16;
use serde::{Deserialize, Serialize};
use tempfile::TempPath;

use super::{Format, Gguf, RecipeError, TinyModel, Value};

/// One thing that is wrong with a file.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// No bytes at all.
    EmptyFile,
    /// Other first four bytes.
    WrongMagic,
    /// A format version from the future.
    UnknownVersion,
    /// The file ends within the metadata.
    TruncatedHeader,
    /// The file ends within the data of the last tensor.
    TruncatedData,
    /// A tensor count that no file could hold.
    HugeTensorCount,
    /// A declared alignment of zero.
    ZeroAlignment,
    /// A family nobody has heard of.
    UnknownArchitecture,
    /// No number of heads.
    MissingKey,
    /// A number of layers given as text.
    WrongKind,
    /// Key heads that do not divide the query heads.
    HeadsDoNotDivide,
    /// An end-of-text id outside the vocabulary.
    SpecialOutside,
    /// A layer without its down projection.
    MissingTensor,
    /// A down projection of another shape.
    WrongShape,
    /// A tensor name twice.
    DuplicateTensor,
    /// A NaN in a matrix: in a value of F32, else in a block's scale.
    NanWeight,
    /// An infinity in the same place.
    InfiniteWeight,
    /// A NaN in a norm.
    NanNorm,
}

/// The matrix that faults of one tensor are planted in.
const VICTIM: &str = "blk.0.ffn_down.weight";

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 18] = [
        Self::EmptyFile,
        Self::WrongMagic,
        Self::UnknownVersion,
        Self::TruncatedHeader,
        Self::TruncatedData,
        Self::HugeTensorCount,
        Self::ZeroAlignment,
        Self::UnknownArchitecture,
        Self::MissingKey,
        Self::WrongKind,
        Self::HeadsDoNotDivide,
        Self::SpecialOutside,
        Self::MissingTensor,
        Self::WrongShape,
        Self::DuplicateTensor,
        Self::NanWeight,
        Self::InfiniteWeight,
        Self::NanNorm,
    ];

    /// The bytes of `model`'s file with this fault.
    ///
    /// # Errors
    /// When the recipe itself is wrong.
    pub fn plant(self, model: &TinyModel) -> Result<Vec<u8>, RecipeError> {
        let mut file = model.gguf()?;
        let arch = model.arch.name();
        match self {
            Self::ZeroAlignment => file.set("general.alignment", Value::U32(0)),
            Self::UnknownArchitecture => file.set("general.architecture", "llamma"),
            Self::MissingKey => drop(file.remove(&format!("{arch}.attention.head_count"))),
            Self::WrongKind => file.set(&format!("{arch}.block_count"), "2"),
            Self::HeadsDoNotDivide => {
                let heads = Value::U32(model.heads as u32 + 1);
                file.set(&format!("{arch}.attention.head_count_kv"), heads);
            }
            Self::SpecialOutside => {
                file.set("tokenizer.ggml.eos_token_id", Value::U32(model.vocab as u32));
            }
            Self::MissingTensor => drop(file.remove_tensor(VICTIM)),
            Self::DuplicateTensor => file.tensors.extend(file.tensors.last().cloned()),
            Self::WrongShape => swap_dims(&mut file),
            Self::NanWeight => plant_value(&mut file, VICTIM, f32::NAN),
            Self::InfiniteWeight => plant_value(&mut file, VICTIM, f32::INFINITY),
            Self::NanNorm => plant_value(&mut file, "output_norm.weight", f32::NAN),
            _ => {}
        }
        let mut bytes = file.to_bytes();
        self.damage(&mut bytes, &file);
        Ok(bytes)
    }

    /// The faults that lie in the bytes rather than in what they say.
    fn damage(self, bytes: &mut Vec<u8>, file: &Gguf) {
        match self {
            Self::EmptyFile => bytes.clear(),
            Self::WrongMagic => bytes[..4].copy_from_slice(b"GGML"),
            Self::UnknownVersion => bytes[4] = 9,
            Self::TruncatedHeader => bytes.truncate(1000),
            // Half of the last tensor is missing, its padding included.
            Self::TruncatedData => {
                let last = file.tensors.last().map_or(0, |tensor| tensor.data.len());
                bytes.truncate(bytes.len() - last.next_multiple_of(file.alignment) + last / 2);
            }
            Self::HugeTensorCount => bytes[8..16].fill(0x7F),
            _ => {}
        }
    }
}

fn swap_dims(file: &mut Gguf) {
    if let Some(tensor) = file.tensor_mut(VICTIM) {
        tensor.dims.reverse();
    }
}

/// Puts `value` into the middle block of a tensor.
fn plant_value(file: &mut Gguf, name: &str, value: f32) {
    let Some(tensor) = file.tensor_mut(name) else { return };
    let bytes = tensor.format.block_bytes();
    let middle = tensor.data.len() / bytes / 2;
    let at = middle * bytes + tensor.format.scale_offset();
    if tensor.format == Format::F32 {
        tensor.data[at..at + 4].copy_from_slice(&value.to_le_bytes());
    } else {
        tensor.data[at..at + 2].copy_from_slice(&f16::from_f32(value).to_le_bytes());
    }
}

/// `bytes` as a temporary `.gguf` file that is deleted with the returned path.
///
/// # Panics
/// When the file cannot be written: only tests call this.
pub fn temp_file_of(bytes: &[u8]) -> TempPath {
    let file = tempfile::Builder::new().prefix("tiny-").suffix(".gguf").tempfile();
    let mut file = file.unwrap_or_else(|error| panic!("no temporary file: {error}"));
    file.write_all(bytes).unwrap_or_else(|error| panic!("cannot write a tiny model: {error}"));
    file.into_temp_path()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_changes_the_file() {
        for model in [TinyModel::llama(), TinyModel::qwen2_k()] {
            let whole = model.gguf().unwrap().to_bytes();
            for fault in Fault::ALL {
                assert_ne!(fault.plant(&model).unwrap(), whole, "{fault:?}");
            }
        }
    }

    #[test]
    fn a_planted_nan_is_a_nan_in_every_format() {
        for format in Format::ALL {
            let model =
                TinyModel { hidden: 256, head_dim: 64, ffn: 256, format, ..TinyModel::llama() };
            let mut file = model.gguf().unwrap();
            plant_value(&mut file, VICTIM, f32::NAN);
            let tensor = file.tensor_mut(VICTIM).unwrap();
            let block = &tensor.data[tensor.data.len() / 2..][format.scale_offset()..];
            let planted = if format == Format::F32 {
                f32::from_le_bytes(block[..4].try_into().unwrap())
            } else {
                f16::from_le_bytes(block[..2].try_into().unwrap()).to_f32()
            };
            assert!(planted.is_nan(), "{format:?}");
        }
    }
}
