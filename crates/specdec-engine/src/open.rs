//! From a path to an engine: everything is checked before the first weight is read.

use crate::cache::{PAGE, pages_for};
use crate::draft::{Merged, ModelDrafter, ModelDrafterSizes, check_vocabulary};
use crate::engine::{Engine, Parts};
use crate::error::EngineError;
use crate::load::{ChatTemplate, Gguf, ModelConfig, tokenizer::Tokenizer};
use crate::memory::{MemoryReport, Needs, Plan};
use crate::model::decoder::Decoder;
use crate::model::weights::{Weights, planned_bytes};
use crate::ops::cpu::{CpuOps, CpuSizes};
use crate::speculate::Speculation;
use specdec_core::Drafter;
use specdec_kernels::{Cpu, CpuError, KvType, Level, Target, available_threads};
use std::path::PathBuf;
use std::sync::Arc;

/// Rows of one prefill chunk. Beyond 8 rows the time is in proportion to the rows, so larger
/// chunks gain nothing and only delay the other sequences and a cancel.
pub const PREFILL_ROWS: usize = 128;

/// How to load a model.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// GGUF file.
    pub model: PathBuf,
    /// Positions of a context; the model's own when `None`.
    pub max_model_len: Option<usize>,
    /// Most sequences that run together, at least 1.
    pub max_num_seqs: usize,
    /// Most requests that are open beside `max_num_seqs`; one counts once, however many its answers.
    pub max_queued: usize,
    /// Threads of a step, the caller's included; what affinity and cgroup quota allow when `None`.
    pub num_threads: Option<usize>,
    /// Instruction level; the best of the machine when `None`.
    pub level: Option<Level>,
    /// Storage type of keys and values.
    pub kv_type: KvType,
    /// Bytes that weights, activations and caches may take together; without one, what they need.
    pub memory_budget: Option<usize>,
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
            memory_budget: None,
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

    fn nodes(&self) -> usize {
        self.speculation.as_ref().map_or(0, |spec| spec.num_speculative_tokens)
    }

    fn sizes(&self, pages: usize) -> CpuSizes {
        let decoding = self.max_num_seqs * (1 + self.nodes());
        let rows = self.prefill_rows.max(decoding);
        CpuSizes {
            rows,
            logits: decoding,
            hidden: if self.captures.is_empty() { 0 } else { rows },
            captures: self.captures.len(),
            pages,
            kv_type: self.kv_type,
        }
    }

    /// Sizes of a draft model: what it does not have to score it needs no logits for.
    fn draft_sizes(&self, spec: &Speculation, pages: usize) -> CpuSizes {
        CpuSizes {
            rows: self.prefill_rows.max(self.max_num_seqs * (1 + spec.draft_nodes())),
            logits: self.max_num_seqs * spec.branching_factor,
            hidden: 0,
            captures: 0,
            pages,
            kv_type: self.kv_type,
        }
    }

    /// What a model needs for contexts of so many positions.
    fn needs(&self, model: &Model<'_>, quantization: Option<Target>, sizes: &CpuSizes) -> Needs {
        let (weights, reading) = planned_bytes(model.file, quantization);
        let context = pages_for(model.context + self.nodes().max(1));
        Needs {
            weights,
            reading,
            activations: sizes.most_activations(&model.config),
            page: PAGE * self.kv_bytes_per_position(&model.config),
            context,
            most: self.max_num_seqs * context,
        }
    }
}

/// A model's file, checked as far as that goes without its weights.
struct Model<'a> {
    file: &'a Gguf,
    config: ModelConfig,
    /// Positions of a context.
    context: usize,
}

/// The model of a file on the CPU, without an engine around it, and the positions of its context.
///
/// # Errors
/// As [`Engine::load`].
pub fn load_decoder(
    options: &EngineOptions,
    file: &Gguf,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Decoder, usize), EngineError> {
    let model = Model::target(options, file)?;
    let needs = options.needs(&model, options.quantization, &options.sizes(0));
    let plan = Plan::new(options.memory_budget, &needs, None, false)?;
    let decoder =
        model.load_target(options, plan.pages, &Arc::new(open_cpu(options)?), progress)?;
    Ok((decoder, model.context))
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

impl<'a> Model<'a> {
    fn target(options: &EngineOptions, file: &'a Gguf) -> Result<Self, EngineError> {
        let config = ModelConfig::from_gguf(file.header())?;
        let context = options.context(&config)?;
        Ok(Self { file, config, context })
    }

    fn load_target(
        &self,
        options: &EngineOptions,
        pages: usize,
        cpu: &Arc<Cpu>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Decoder, EngineError> {
        let mut weights = Weights::new(self.file, progress).quantised_to(options.quantization);
        let sizes = options.sizes(pages);
        let ops = CpuOps::load(Arc::clone(cpu), &self.config, &mut weights, sizes)?;
        let decoder = Decoder::new(Box::new(ops), options.captures.clone())?;
        Ok(decoder.limited(pages, options.enable_prefix_caching))
    }

    fn bytes(&self) -> u64 {
        self.file.header().tensors().iter().map(|tensor| tensor.bytes).sum()
    }
}

/// A draft model beside the model that it drafts for.
struct Draft<'a> {
    speculation: &'a Speculation,
    model: Model<'a>,
    vocab: usize,
    target_vocab: usize,
}

impl<'a> Draft<'a> {
    fn open(
        speculation: &'a Speculation,
        file: &'a Gguf,
        target: &Model<'_>,
        tokenizer: &Tokenizer,
    ) -> Result<Self, EngineError> {
        let config = ModelConfig::from_gguf(file.header())?;
        let vocab = check_vocabulary(tokenizer, &Tokenizer::from_gguf(file.header())?)?;
        let context = target.context.min(config.context_length);
        let model = Model { file, config, context };
        Ok(Self { speculation, model, vocab, target_vocab: target.config.vocab })
    }

    fn needs(&self, options: &EngineOptions) -> Needs {
        let sizes = options.draft_sizes(self.speculation, 0);
        options.needs(&self.model, self.speculation.quantization, &sizes)
    }

    fn load(
        &self,
        options: &EngineOptions,
        pages: usize,
        cpu: &Arc<Cpu>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ModelDrafter, EngineError> {
        let sizes = options.draft_sizes(self.speculation, pages);
        let mut weights =
            Weights::new(self.model.file, progress).quantised_to(self.speculation.quantization);
        let ops = CpuOps::load(Arc::clone(cpu), &self.model.config, &mut weights, sizes)?;
        let sizes = ModelDrafterSizes {
            context: self.model.context,
            vocab: self.vocab,
            target_vocab: self.target_vocab,
            nodes: self.speculation.draft_nodes(),
            branching: self.speculation.branching_factor,
            draws: self.speculation.draws,
        };
        let decoder = Decoder::new(Box::new(ops), Vec::new())?;
        Ok(ModelDrafter::new(decoder.limited(pages, options.enable_prefix_caching), sizes))
    }
}

/// The sources of drafts as one.
fn drafter(
    speculation: Option<&Speculation>,
    draft: Option<ModelDrafter>,
) -> Result<Option<Box<dyn Drafter>>, EngineError> {
    let Some(speculation) = speculation else { return Ok(None) };
    let mut sources: Vec<Box<dyn Drafter>> = Vec::new();
    sources.extend(draft.map(|draft| Box::new(draft) as Box<dyn Drafter>));
    sources.extend(speculation.ngram()?.map(|ngram| Box::new(ngram) as Box<dyn Drafter>));
    Ok(Some(Box::new(Merged::new(sources))))
}

impl Engine {
    /// Loads a model file, and its draft model's, and starts the engine. `progress` hears bytes done
    /// and bytes in all. Without room for it in the budget, a draft model that the engine chose
    /// itself is left out.
    ///
    /// # Errors
    /// [`EngineError::Config`] for options, before a file is opened; [`EngineError::Load`] and
    /// [`EngineError::Tensor`] for the files; [`EngineError::Vocabulary`] for a draft model of
    /// another language; [`EngineError::Memory`] for a budget, before a weight is read;
    /// [`EngineError::Kv`] for memory.
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
        let model = Model::target(options, &file)?;
        let loaded = load_both(options, &model, &tokenizer, progress)?;
        Engine::start(Parts {
            decoder: loaded.decoder,
            tokenizer,
            template,
            max_model_len: model.context,
            max_num_seqs: options.max_num_seqs,
            max_queued: options.max_queued,
            seed: options.seed,
            drafter: drafter(loaded.speculation.as_ref(), loaded.draft)?,
            speculation: loaded.speculation,
            memory: loaded.memory,
        })
    }
}

/// A model with its draft model, if there is one and room for it.
struct Loaded {
    decoder: Decoder,
    draft: Option<ModelDrafter>,
    speculation: Option<Speculation>,
    memory: MemoryReport,
}

fn load_both(
    options: &EngineOptions,
    model: &Model<'_>,
    tokenizer: &Tokenizer,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Loaded, EngineError> {
    let speculation = options.speculation.as_ref();
    let file = speculation.and_then(Speculation::draft_model).map(Gguf::open).transpose()?;
    let draft = match speculation.zip(file.as_ref()) {
        Some((speculation, file)) => Some(Draft::open(speculation, file, model, tokenizer)?),
        None => None,
    };
    let needs = options.needs(model, options.quantization, &options.sizes(0));
    let beside = draft.as_ref().map(|draft| draft.needs(options));
    let automatic = speculation.is_some_and(|speculation| speculation.automatic);
    let plan = Plan::new(options.memory_budget, &needs, beside.as_ref(), automatic)?;
    let (first, second) = (model.bytes(), draft.as_ref().map_or(0, |draft| draft.model.bytes()));
    let cpu = Arc::new(open_cpu(options)?);
    let mut told = |done, _: u64| progress(done, first + second);
    let decoder = model.load_target(options, plan.pages, &cpu, &mut told)?;
    let mut told = |done, _: u64| progress(first + done, first + second);
    let loaded = match draft.as_ref().zip(plan.draft) {
        Some((draft, pages)) => Some(draft.load(options, pages, &cpu, &mut told)?),
        None => None,
    };
    let left_out = draft.is_some() && loaded.is_none();
    let memory = MemoryReport::new(options.memory_budget, plan, &decoder, loaded.as_ref());
    let memory = MemoryReport { draft_left_out: left_out, ..memory };
    let speculation = match speculation {
        Some(speculation) if left_out => speculation.without_draft_model(),
        as_asked => as_asked.cloned(),
    };
    Ok(Loaded { decoder, draft: loaded, speculation, memory })
}
