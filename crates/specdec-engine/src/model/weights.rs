//! Tensors of a model file, one at a time: read, packed or de-quantised, and dropped, so at most one
//! tensor's bytes are in memory beside what the device keeps.

use crate::error::EngineError;
use crate::load::{
    Gguf, LoadError, ModelConfig,
    config::{LESS_ONE_KEY, ROPE_FACTORS, RopeScaling},
    gguf::TensorInfo,
};
use specdec_kernels::{Cpu, Format, Matrix, MatrixError, Target, dequantise};
use std::ops::Range;

/// The tensors of an open file, with a buffer for the one in hand.
pub struct Weights<'a> {
    file: &'a Gguf,
    buffer: Vec<u8>,
    /// Whether norms multiply by 1 + what the file holds.
    less_one: bool,
    target: Option<Target>,
    progress: &'a mut dyn FnMut(u64, u64),
    done: u64,
    total: u64,
}

impl<'a> Weights<'a> {
    /// The tensors of `file`; `progress` hears bytes read and bytes in all.
    pub fn new(file: &'a Gguf, progress: &'a mut dyn FnMut(u64, u64)) -> Self {
        let total = file.header().tensors().iter().map(|tensor| tensor.bytes).sum();
        let less_one = matches!(file.header().find(LESS_ONE_KEY), Ok(Some(true)));
        Self { file, buffer: Vec::new(), less_one, target: None, progress, done: 0, total }
    }

    /// Matrices are quantised to `target` where that makes them smaller; `None`: they stay as the
    /// file has them.
    #[must_use]
    pub fn quantised_to(self, target: Option<Target>) -> Self {
        Self { target, ..self }
    }

    /// A matrix packed for the kernels.
    ///
    /// # Errors
    /// [`EngineError::Load`] for a tensor that is missing, unreadable or of a format without a
    /// kernel; [`EngineError::Tensor`] for data that cannot be computed with.
    pub fn matrix(&mut self, cpu: &Cpu, name: &str) -> Result<Matrix, EngineError> {
        self.rows(cpu, name, None)
    }

    /// Some rows of a matrix that holds several.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn rows(
        &mut self,
        cpu: &Cpu,
        name: &str,
        rows: Option<Range<usize>>,
    ) -> Result<Matrix, EngineError> {
        let (tensor, format) = self.read(name, rows.clone())?;
        let count = rows.map_or(tensor.rows() as usize, |rows| rows.len());
        let cols = tensor.cols() as usize;
        match smaller(format, cols, self.target) {
            Some(to) => Matrix::pack_as(cpu, format, count, cols, &self.buffer, to),
            None => Matrix::pack(cpu, format, count, cols, &self.buffer),
        }
        .map_err(|source| wrong(name, source))
    }

    /// All values of a tensor in f32, row by row.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn values(&mut self, name: &str) -> Result<Vec<f32>, EngineError> {
        let (tensor, format) = self.read(name, None)?;
        let mut values = vec![0.0; (tensor.rows() * tensor.cols()) as usize];
        dequantise(format, &self.buffer, &mut values).map_err(|source| wrong(name, source))?;
        if self.less_one && name.ends_with("norm.weight") {
            for value in &mut values {
                *value += 1.0;
            }
        }
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => {
                let row = at / tensor.cols() as usize;
                Err(wrong(name, MatrixError::NotFinite { row }))
            }
            None => Ok(values),
        }
    }

    /// As [`Self::values`], or `None` where the file lacks the tensor.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn optional_values(&mut self, name: &str) -> Result<Option<Vec<f32>>, EngineError> {
        match self.file.header().tensor(name) {
            Some(_) => self.values(name).map(Some),
            None => Ok(None),
        }
    }

    /// By what the turn of each rotary pair is divided, where the model says.
    ///
    /// # Errors
    /// As [`Self::matrix`]; [`LoadError::KeyValue`] for divisors that are not positive.
    pub fn rope_divisors(&mut self, config: &ModelConfig) -> Result<Option<Vec<f32>>, EngineError> {
        if config.rope_scaling != RopeScaling::Tensor {
            return Ok(config.rope_scaling.divisors(config.rope_base, config.head_dim));
        }
        let divisors = self.values(ROPE_FACTORS)?;
        match divisors.iter().find(|&&divisor| divisor <= 0.0) {
            Some(found) => Err(EngineError::Load(LoadError::KeyValue {
                key: ROPE_FACTORS.to_owned(),
                found: found.to_string(),
                expected: "numbers above 0".to_owned(),
            })),
            None => Ok(Some(divisors)),
        }
    }

    fn read(
        &mut self,
        name: &str,
        rows: Option<Range<usize>>,
    ) -> Result<(&'a TensorInfo, Format), EngineError> {
        let tensor = self
            .file
            .header()
            .tensor(name)
            .ok_or_else(|| LoadError::MissingTensor { name: name.to_owned() })?;
        let format = Format::from_ggml(tensor.kind.id).ok_or_else(|| LoadError::Unsupported {
            field: name.to_owned(),
            found: format!("the format {}", tensor.kind.name),
        })?;
        let row = tensor.bytes / tensor.rows();
        let rows = rows.map_or(0..tensor.rows(), |rows| rows.start as u64..rows.end as u64);
        let bytes = rows.start * row..rows.end * row;
        self.done += bytes.end - bytes.start;
        self.file.read_bytes(tensor, bytes, &mut self.buffer)?;
        (self.progress)(self.done, self.total);
        Ok((tensor, format))
    }
}

/// The format that rows of `cols` weights are quantised to, if it makes them smaller.
fn smaller(format: Format, cols: usize, target: Option<Target>) -> Option<Target> {
    let from = format.row_bytes(cols);
    target.filter(|to| to.format().row_bytes(cols).zip(from).is_some_and(|(to, from)| to < from))
}

/// Bytes that the tensors of `file` will take once they are packed, and those of the largest as it
/// stands in the file: it is read while the others are in place. A tensor of an unknown format counts as it stands; it is refused when it is read.
pub(crate) fn planned_bytes(file: &Gguf, target: Option<Target>) -> (usize, usize) {
    let tensors = file.header().tensors();
    let packed = |tensor: &TensorInfo| {
        let (rows, cols) = (tensor.rows() as usize, tensor.cols() as usize);
        let format = Format::from_ggml(tensor.kind.id)?;
        if tensor.dims.len() == 1 {
            return Some(cols * size_of::<f32>());
        }
        let format = smaller(format, cols, target).map_or(format, Target::format);
        Matrix::packed_bytes(format, rows, cols)
    };
    let bytes = |tensor: &TensorInfo| packed(tensor).unwrap_or(tensor.bytes as usize);
    let largest = tensors.iter().map(|tensor| tensor.bytes as usize).max().unwrap_or(0);
    (tensors.iter().map(bytes).sum(), largest)
}

fn wrong(tensor: &str, source: MatrixError) -> EngineError {
    EngineError::Tensor { tensor: tensor.to_owned(), source }
}
