//! From a path to an engine: everything is checked before the first weight is read.

use crate::cache::PAGE;
use crate::engine::{Engine, Parts};
use crate::error::EngineError;
use crate::load::{ChatTemplate, Gguf, ModelConfig, tokenizer::Tokenizer};
use crate::model::{decoder::Decoder, weights::Weights};
use crate::ops::cpu::{CpuOps, CpuSizes};
use crate::scheduler::pages_wanted;
use crate::speculate::Speculation;
use specdec_kernels::{Cpu, CpuError, KvType, Level, available_threads};
use std::path::PathBuf;
use std::sync::Arc;

/// Rows of one prefill chunk. Beyond about 16 rows a pass costs in proportion to its rows, so larger
/// chunks gain nothing and only delay the other sequences and a cancel.
pub const PREFILL_ROWS: usize = 128;

/// Bytes that the KV cache may take when several full contexts would take more. The pages are
/// touched only when used.
const KV_BYTES: usize = 2 << 30;

/// How to load a model.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// GGUF file.
    pub model: PathBuf,
    /// Positions of a context; the model's own when `None`.
    pub max_model_len: Option<usize>,
    /// Most sequences that run together, at least 1.
    pub max_num_seqs: usize,
    /// Threads of a step, the caller's included; what affinity and cgroup quota allow when `None`.
    pub num_threads: Option<usize>,
    /// Instruction level; the best of the machine when `None`.
    pub level: Option<Level>,
    /// Storage type of keys and values.
    pub kv_type: KvType,
    /// Seeds requests without a seed.
    pub seed: u64,
    /// How to draft; `None` decodes plainly.
    pub speculation: Option<Speculation>,
    /// Chat template instead of the model's own.
    pub chat_template: Option<String>,
    /// Rows of one prefill chunk, at least 1.
    pub prefill_rows: usize,
    /// Layers whose input is kept for rows that ask ([`Decoder::new`]).
    pub captures: Vec<usize>,
}

impl EngineOptions {
    /// Defaults for `model`: the machine's threads, 8 sequences, f16 cache, no speculation.
    pub fn new(model: impl Into<PathBuf>) -> Self {
        Self {
            model: model.into(),
            max_model_len: None,
            max_num_seqs: 8,
            num_threads: None,
            level: None,
            kv_type: KvType::F16,
            seed: 0,
            speculation: None,
            chat_template: None,
            prefill_rows: PREFILL_ROWS,
            captures: Vec::new(),
        }
    }

    fn validate(&self) -> Result<(), EngineError> {
        let counts = [
            ("max_num_seqs", self.max_num_seqs, 1024),
            ("num_threads", self.num_threads.unwrap_or(1), 1024),
            ("prefill_rows", self.prefill_rows, 4096),
        ];
        for (field, found, most) in counts {
            if found == 0 || found > most {
                return Err(EngineError::Config {
                    field,
                    found: found.to_string(),
                    expected: format!("1..={most}"),
                });
            }
        }
        self.speculation.as_ref().map_or(Ok(()), Speculation::validate)
    }

    fn context(&self, config: &ModelConfig) -> Result<usize, EngineError> {
        match self.max_model_len {
            None => Ok(config.context_length),
            Some(found) if (2..=config.context_length).contains(&found) => Ok(found),
            Some(found) => Err(EngineError::Config {
                field: "max_model_len",
                found: found.to_string(),
                expected: format!("2..={} (the model's context)", config.context_length),
            }),
        }
    }

    /// Keys and values of one position, all layers.
    pub(crate) fn kv_bytes_per_position(&self, config: &ModelConfig) -> usize {
        let number = match self.kv_type {
            KvType::F16 => 2,
            KvType::F32 => 4,
        };
        2 * config.layers * config.kv_heads * config.head_dim * number
    }

    fn sizes(&self, config: &ModelConfig, context: usize) -> CpuSizes {
        let nodes = self.speculation.as_ref().map_or(0, |spec| spec.num_speculative_tokens);
        let decoding = self.max_num_seqs * (1 + nodes);
        let rows = self.prefill_rows.max(decoding);
        let one = pages_wanted(1, context, nodes.max(1));
        let pages = (KV_BYTES / (PAGE * self.kv_bytes_per_position(config))).max(one);
        CpuSizes {
            rows,
            logits: decoding,
            hidden: if self.captures.is_empty() { 0 } else { rows },
            captures: self.captures.len(),
            pages: pages.min(pages_wanted(self.max_num_seqs, context, nodes.max(1))),
            kv_type: self.kv_type,
        }
    }
}

/// The model of a file on the CPU, without an engine around it.
///
/// # Errors
/// As [`Engine::load`].
pub fn load_decoder(
    options: &EngineOptions,
    file: &Gguf,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Decoder, usize), EngineError> {
    let config = ModelConfig::from_gguf(file.header())?;
    let context = options.context(&config)?;
    let cpu = open_cpu(options)?;
    let mut weights = Weights::new(file, progress);
    let ops = CpuOps::load(cpu, &config, &mut weights, options.sizes(&config, context))?;
    Ok((Decoder::new(Box::new(ops), options.captures.clone())?, context))
}

/// The threads and the instruction level that `options` ask for.
///
/// # Errors
/// [`EngineError::Cpu`] for a level that the machine lacks, or for threads that it refuses.
pub(crate) fn open_cpu(options: &EngineOptions) -> Result<Cpu, EngineError> {
    let threads = options.num_threads.unwrap_or_else(available_threads);
    let cpu = match options.level {
        Some(level) => Cpu::with_level(threads, level),
        None => Cpu::new(threads).map_err(CpuError::from),
    };
    Ok(cpu?)
}

impl Engine {
    /// Loads a model file and starts its engine. `progress` hears bytes done and bytes in all.
    ///
    /// # Errors
    /// [`EngineError::Config`] for options, before the file is opened; [`EngineError::Load`] and
    /// [`EngineError::Tensor`] for the file; [`EngineError::Kv`] for memory.
    pub fn load(
        options: &EngineOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, EngineError> {
        options.validate()?;
        let file = Gguf::open(&options.model)?;
        let tokenizer = Arc::new(Tokenizer::from_gguf(file.header())?);
        let template = match &options.chat_template {
            Some(source) => Some(ChatTemplate::new(source, Arc::clone(&tokenizer))?),
            None => ChatTemplate::from_gguf(file.header(), Arc::clone(&tokenizer))?,
        };
        let (decoder, max_model_len) = load_decoder(options, &file, progress)?;
        Engine::start(Parts {
            decoder,
            tokenizer,
            template,
            max_model_len,
            max_num_seqs: options.max_num_seqs,
            seed: options.seed,
            speculation: options.speculation.clone(),
        })
    }
}
