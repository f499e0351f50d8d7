//! Everything that can go wrong between a file and a text.

use crate::load::{LoadError, TemplateError};
use specdec_core::{LawError, ParameterError};
use specdec_kernels::{CpuError, KvError, MatrixError, PoolError};

/// Error of the engine: what was found, what was expected, what to do.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A model file could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A tensor's data is unusable.
    #[error("tensor {tensor:?}: {source}")]
    Tensor {
        /// Name in the file.
        tensor: String,
        /// What is wrong with it.
        source: MatrixError,
    },
    /// An option or parameter has a value that cannot be used.
    #[error("{field} is {found}, expected {expected}")]
    Config {
        /// Name of the option.
        field: &'static str,
        /// The value given.
        found: String,
        /// The values allowed.
        expected: String,
    },
    /// A parameter of the algorithms is out of range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The prompt has no token.
    #[error("the prompt has no token; give at least one character or token id")]
    EmptyPrompt,
    /// A token id of the prompt is outside the vocabulary.
    #[error("prompt token {index} is {token}, expected an id below {vocab}")]
    PromptToken {
        /// Place in the prompt.
        index: usize,
        /// The id given.
        token: u32,
        /// Vocabulary size.
        vocab: usize,
    },
    /// The prompt leaves no room for an answer.
    #[error(
        "the prompt has {tokens} tokens, but at most {limit} leave room for one more in a context \
         of {context}; shorten the prompt or load with a larger max_model_len"
    )]
    ContextLength {
        /// Tokens of the prompt.
        tokens: usize,
        /// Longest prompt allowed.
        limit: usize,
        /// Positions that the engine was loaded with.
        context: usize,
    },
    /// The prompt is longer than a context of the longest tokens.
    #[error(
        "the prompt has {bytes} bytes, but no prompt beyond {limit} bytes fits into a context of \
         {context} tokens; shorten the prompt or load with a larger max_model_len"
    )]
    PromptBytes {
        /// Bytes of the prompt.
        bytes: usize,
        /// Longest prompt in bytes.
        limit: usize,
        /// Positions that the engine was loaded with.
        context: usize,
    },
    /// The KV cache has too few free pages.
    #[error("the KV cache needs {needed} more pages, but {free} are free")]
    CacheFull {
        /// Pages missing.
        needed: usize,
        /// Pages free.
        free: usize,
    },
    /// What the models need does not fit into the budget.
    #[error(
        "memory_budget is {budget} bytes, but {needed} are needed: {weights} for weights, \
         {activations} for activations, {cache} for the cache of one context of {context} tokens; \
         {advice}"
    )]
    Memory {
        /// Bytes given.
        budget: usize,
        /// The least number of bytes that would do.
        needed: usize,
        /// Bytes of weights.
        weights: usize,
        /// Bytes of activations.
        activations: usize,
        /// Bytes of keys and values of one whole context.
        cache: usize,
        /// Positions of that context.
        context: usize,
        /// What helps.
        advice: &'static str,
    },
    /// The system has no room for what a pass computes.
    #[error(
        "no memory for the {bytes} bytes that a pass of {rows} rows, {logits} of them with logits, \
         takes at most; lower max_num_seqs or num_speculative_tokens, or give a memory_budget"
    )]
    Activations {
        /// Bytes, at most.
        bytes: usize,
        /// Most rows of a pass.
        rows: usize,
        /// Most rows of a pass with logits.
        logits: usize,
    },
    /// A forward pass was asked for rows that it cannot run.
    #[error("row {row} {reason}")]
    Rows {
        /// Index of the row.
        row: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Logits from which no token can be drawn.
    #[error("cannot sample: {0}; the weights or the prompt make the model overflow")]
    Law(LawError),
    /// Parameters that together leave nothing to draw.
    #[error(
        "the request's parameters leave no token at this position; let allowed_token_ids hold one \
         that bad_words, min_tokens and logit_bias do not forbid"
    )]
    NothingAllowed,
    /// A conversation that the chat template cannot render.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The model brings no chat template.
    #[error("the model has no chat template; give one with chat_template")]
    NoChatTemplate,
    /// The draft model speaks another language than its target.
    #[error(
        "token {id} is {target:?} in the model and {draft:?} in its draft; a draft model needs the \
         tokens of its target, use one of the same family"
    )]
    Vocabulary {
        /// The first id that means different things.
        id: u32,
        /// Its text in the target.
        target: String,
        /// Its text in the draft.
        draft: String,
    },
    /// As many requests are open as the engine takes.
    #[error(
        "{open} requests are running or waiting, and the engine takes {limit}; try again when one \
         has ended, or load with a larger max_queued_requests"
    )]
    QueueFull {
        /// Requests that have not ended.
        open: usize,
        /// Most of them.
        limit: usize,
    },
    /// A kernel could not run.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The kernels cannot be set up as asked.
    #[error(transparent)]
    Cpu(#[from] CpuError),
    /// The KV store could not be made.
    #[error(transparent)]
    Kv(#[from] KvError),
    /// A candle tensor operation failed.
    #[cfg(feature = "candle")]
    #[error(transparent)]
    Candle(#[from] candle_core::Error),
    /// The engine thread could not be started.
    #[error("cannot start the engine thread: {0}")]
    Spawn(std::io::Error),
    /// The request was cancelled by its caller.
    #[error("the request was cancelled")]
    Cancelled,
    /// The engine was closed.
    #[error("the engine is closed; load the model again")]
    Closed,
    /// The engine stopped after a fault of its own.
    #[error("the engine stopped after an internal fault ({message}); load the model again")]
    Dead {
        /// What the fault said.
        message: String,
    },
    /// The engine was used in a child made by fork.
    #[error(
        "the engine was loaded in process {parent} and does not survive a fork; load it in the \
         child, or start workers with the \"spawn\" method"
    )]
    Forked {
        /// Process that loaded the engine.
        parent: u32,
    },
}

impl From<LawError> for EngineError {
    fn from(error: LawError) -> Self {
        match error {
            // A model's own logits are never all -inf: its finite weights would have to overflow
            // for every token alike, and none become NaN.
            LawError::NoToken { .. } => Self::NothingAllowed,
            other => Self::Law(other),
        }
    }
}

impl EngineError {
    /// What a caught panic says. The engine that panicked is [`EngineError::Dead`].
    pub fn from_panic(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self::Dead { message: text.unwrap_or_else(|| "a panic without a message".to_owned()) }
    }
}
