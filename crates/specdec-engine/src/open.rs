//! From a path to an engine: everything is checked before the first weight is read.

use crate::cache::PAGE;
use crate::draft::{Merged, ModelDrafter, ModelDrafterSizes, check_vocabulary};
use crate::engine::{Engine, Parts};
use crate::error::EngineError;
use crate::load::{ChatTemplate, Gguf, ModelConfig, tokenizer::Tokenizer};
use crate::model::{decoder::Decoder, weights::Weights};
use crate::ops::Memory;
use crate::ops::cpu::{CpuOps, CpuSizes};
use crate::scheduler::pages_wanted;
use crate::speculate::Speculation;
use specdec_core::Drafter;
use specdec_kernels::{Cpu, CpuError, KvType, Level, Target, available_threads};
use std::path::PathBuf;
use std::sync::Arc;

/// Rows of one prefill chunk. Beyond 8 rows the time is in proportion to the rows, so larger
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
    /// Most sequences that wait beside them.
    pub max_queued: usize,
    /// Threads of a step, the caller's included; what affinity and cgroup quota allow when `None`.
    pub num_threads: Option<usize>,
    /// Instruction level; the best of the machine when `None`.
    pub level: Option<Level>,
    /// Storage type of keys and values.
    pub kv_type: KvType,
    /// Whether keys and values of texts are kept for later requests that begin alike.
    pub enable_prefix_caching: bool,
    /// Seeds requests without a seed.
    pub seed: u64,
    /// How to draft; `None` decodes plainly.
    pub speculation: Option<Speculation>,
    /// Chat template instead of the model's own.
    pub chat_template: Option<String>,
    /// Rows of one prefill chunk, at least 1.
    pub prefill_rows: usize,
    /// Weights of the model are quantised to this at load where that makes them smaller.
    pub quantization: Option<Target>,
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
            max_queued: 4096,
            num_threads: None,
            level: None,
            kv_type: KvType::F16,
            enable_prefix_caching: true,
            seed: 0,
            speculation: None,
            chat_template: None,
            prefill_rows: PREFILL_ROWS,
            quantization: None,
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
        CpuSizes {
            rows,
            logits: decoding,
            hidden: if self.captures.is_empty() { 0 } else { rows },
            captures: self.captures.len(),
            pages: self.pages(config, context, nodes),
            kv_type: self.kv_type,
        }
    }

    /// Sizes of a draft model: what it does not have to score it needs no logits for.
    fn draft_sizes(&self, config: &ModelConfig, context: usize, spec: &Speculation) -> CpuSizes {
        let nodes = spec.draft_nodes();
        CpuSizes {
            rows: self.prefill_rows.max(self.max_num_seqs * (1 + nodes)),
            logits: self.max_num_seqs * spec.branching_factor,
            hidden: 0,
            captures: 0,
            pages: self.pages(config, context, nodes),
            kv_type: self.kv_type,
        }
    }

    fn pages(&self, config: &ModelConfig, context: usize, nodes: usize) -> usize {
        let one = pages_wanted(1, context, nodes.max(1));
        let pages = (KV_BYTES / (PAGE * self.kv_bytes_per_position(config))).max(one);
        pages.min(pages_wanted(self.max_num_seqs, context, nodes.max(1)))
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
    target(options, file, &Arc::new(open_cpu(options)?), progress)
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

fn target(
    options: &EngineOptions,
    file: &Gguf,
    cpu: &Arc<Cpu>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Decoder, usize), EngineError> {
    let config = ModelConfig::from_gguf(file.header())?;
    let context = options.context(&config)?;
    let sizes = options.sizes(&config, context);
    let mut weights = Weights::new(file, progress).quantised_to(options.quantization);
    let ops = CpuOps::load(Arc::clone(cpu), &config, &mut weights, sizes)?;
    let decoder = Decoder::new(Box::new(ops), options.captures.clone())?;
    Ok((decoder.limited(sizes.pages, options.enable_prefix_caching), context))
}

/// A draft model's file, checked as far as that goes without its weights.
struct Draft<'a> {
    speculation: &'a Speculation,
    file: Gguf,
    config: ModelConfig,
    vocab: usize,
}

impl<'a> Draft<'a> {
    fn open(speculation: &'a Speculation, target: &Tokenizer) -> Result<Option<Self>, EngineError> {
        let Some(path) = speculation.draft_model() else { return Ok(None) };
        let file = Gguf::open(path)?;
        let config = ModelConfig::from_gguf(file.header())?;
        let vocab = check_vocabulary(target, &Tokenizer::from_gguf(file.header())?)?;
        Ok(Some(Self { speculation, file, config, vocab }))
    }

    /// Loads it for a target with that context and that many rows of embeddings.
    fn load(
        &self,
        options: &EngineOptions,
        target: (usize, usize),
        cpu: &Arc<Cpu>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ModelDrafter, EngineError> {
        let (context, target_vocab) = target;
        let context = context.min(self.config.context_length);
        let sizes = options.draft_sizes(&self.config, context, self.speculation);
        let mut weights =
            Weights::new(&self.file, progress).quantised_to(self.speculation.quantization);
        let ops = CpuOps::load(Arc::clone(cpu), &self.config, &mut weights, sizes)?;
        let pages = sizes.pages;
        let sizes = ModelDrafterSizes {
            context,
            vocab: self.vocab,
            target_vocab,
            nodes: self.speculation.draft_nodes(),
            branching: self.speculation.branching_factor,
            draws: self.speculation.draws,
        };
        let decoder = Decoder::new(Box::new(ops), Vec::new())?;
        let decoder = decoder.limited(pages, options.enable_prefix_caching);
        Ok(ModelDrafter::new(decoder, sizes))
    }
}

/// The sources of drafts as one, with the memory that a draft model takes.
fn drafter(
    speculation: Option<&Speculation>,
    draft: Option<ModelDrafter>,
) -> Result<(Option<Box<dyn Drafter>>, Memory), EngineError> {
    let Some(speculation) = speculation else { return Ok((None, Memory::default())) };
    let memory = draft.as_ref().map(ModelDrafter::memory).unwrap_or_default();
    let mut sources: Vec<Box<dyn Drafter>> = Vec::new();
    sources.extend(draft.map(|draft| Box::new(draft) as Box<dyn Drafter>));
    sources.extend(speculation.ngram()?.map(|ngram| Box::new(ngram) as Box<dyn Drafter>));
    Ok((Some(Box::new(Merged::new(sources))), memory))
}

fn bytes(file: &Gguf) -> u64 {
    file.header().tensors().iter().map(|tensor| tensor.bytes).sum()
}

impl Engine {
    /// Loads a model file, and its draft model's, and starts the engine. `progress` hears bytes done
    /// and bytes in all.
    ///
    /// # Errors
    /// [`EngineError::Config`] for options, before a file is opened; [`EngineError::Load`] and
    /// [`EngineError::Tensor`] for the files; [`EngineError::Vocabulary`] for a draft model of
    /// another language; [`EngineError::Kv`] for memory.
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
        let speculation = options.speculation.as_ref();
        let draft = match speculation {
            Some(speculation) => Draft::open(speculation, &tokenizer)?,
            None => None,
        };
        let (first, second) = (bytes(&file), draft.as_ref().map_or(0, |draft| bytes(&draft.file)));
        let cpu = Arc::new(open_cpu(options)?);
        let (decoder, max_model_len) =
            target(options, &file, &cpu, &mut |done, _| progress(done, first + second))?;
        let draft = match &draft {
            Some(draft) => Some(draft.load(
                options,
                (max_model_len, decoder.config().vocab),
                &cpu,
                &mut |done, _| {
                    progress(first + done, first + second);
                },
            )?),
            None => None,
        };
        let (drafter, draft_memory) = drafter(speculation, draft)?;
        Engine::start(Parts {
            decoder,
            tokenizer,
            template,
            max_model_len,
            max_num_seqs: options.max_num_seqs,
            max_queued: options.max_queued,
            seed: options.seed,
            speculation: speculation.cloned(),
            drafter,
            draft_memory,
        })
    }
}
