//! Every engine error to its Python class. The words are the engine's.

use pyo3::import_exception;
use pyo3::prelude::*;
use specdec_engine::EngineError;
use specdec_engine::load::LoadError;
use specdec_kernels::{CpuError, PoolError};

// Imported on first use, so that the package can import this module first.
import_exception!(specdec_rs.errors, ClosedError);
import_exception!(specdec_rs.errors, ConfigError);
import_exception!(specdec_rs.errors, ContextLengthError);
import_exception!(specdec_rs.errors, EngineDeadError);
import_exception!(specdec_rs.errors, ForkError);
import_exception!(specdec_rs.errors, LogitsError);
import_exception!(specdec_rs.errors, MemoryBudgetError);
import_exception!(specdec_rs.errors, ModelLoadError);
import_exception!(specdec_rs.errors, ModelNotFoundError);
import_exception!(specdec_rs.errors, QueueFullError);
import_exception!(specdec_rs.errors, RequestAborted);

/// The Python exception that says what `error` says.
pub(crate) fn to_python(error: &EngineError) -> PyErr {
    use EngineError as E;
    let text = error.to_string();
    match error {
        E::Config { .. }
        | E::Parameter(_)
        | E::NothingAllowed
        | E::PromptToken { .. }
        | E::Template(_)
        | E::NoChatTemplate => ConfigError::new_err(text),
        E::EmptyPrompt | E::PromptBytes { .. } | E::ContextLength { .. } => {
            ContextLengthError::new_err(text)
        }
        E::Load(LoadError::NotFound { .. }) => ModelNotFoundError::new_err(text),
        E::Load(_)
        | E::Tensor { .. }
        | E::Vocabulary { .. }
        | E::Kv(_)
        | E::Activations { .. }
        | E::Spawn(_)
        | E::Cpu(CpuError::Level { .. } | CpuError::Pool(PoolError::Spawn { .. })) => {
            ModelLoadError::new_err(text)
        }
        E::Memory { .. } => MemoryBudgetError::new_err(text),
        E::Law(_) => LogitsError::new_err(text),
        E::QueueFull { .. } => QueueFullError::new_err(text),
        E::Cancelled => RequestAborted::new_err(text),
        E::Closed => ClosedError::new_err(text),
        E::Forked { .. } | E::Pool(PoolError::Forked { .. }) => ForkError::new_err(text),
        _ => EngineDeadError::new_err(text),
    }
}
