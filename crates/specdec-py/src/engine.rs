//! `Engine`: a loaded model.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use pyo3::prelude::*;
use serde_json::Value;
use specdec_engine::load::{ChatOptions, Specials};
use specdec_engine::{self as core, EngineError, EngineOptions};

use crate::answer::{PyEngineMetrics, PyMemoryReport};
use crate::border::{Progress, in_thread, interruptible, outside};
use crate::local::Local;
use crate::measure::parse;
use crate::params::{PySamplingParams, PySpeculativeConfig, target};
use crate::request::{ReadyQueue, Request};

/// A model, its tokenizer and the thread that steps it; any number of threads may use it.
#[pyclass(frozen, module = "specdec_rs._core")]
pub(crate) struct Engine(Local<core::Engine>);

#[pymethods]
impl Engine {
    /// Load a GGUF file, and its draft model's. `progress(done, total)` hears bytes, in the calling thread.
    #[staticmethod]
    #[pyo3(signature = (
        model, *, max_model_len, max_num_seqs, num_threads, seed, speculation, chat_template,
        progress, draft_model = None, max_queued = 4096, level = None,
        quantization = None, memory_budget = None, enable_prefix_caching = true
    ))]
    #[expect(clippy::too_many_arguments, reason = "all are by name, as Python's LLM has them")]
    fn load(
        py: Python<'_>,
        model: PathBuf,
        max_model_len: Option<usize>,
        max_num_seqs: usize,
        num_threads: Option<usize>,
        seed: u64,
        speculation: Option<PySpeculativeConfig>,
        chat_template: Option<String>,
        progress: Option<&Bound<'_, PyAny>>,
        draft_model: Option<PathBuf>,
        max_queued: usize,
        level: Option<&str>,
        quantization: Option<&str>,
        memory_budget: Option<usize>,
        enable_prefix_caching: bool,
    ) -> PyResult<Self> {
        let options = EngineOptions {
            max_model_len,
            max_num_seqs,
            max_queued,
            num_threads,
            seed,
            speculation: speculation.map(|config| config.convert(draft_model)),
            chat_template,
            level: outside(py, || parse(level))?,
            quantization: quantization.and_then(target),
            memory_budget,
            enable_prefix_caching,
            ..EngineOptions::new(model)
        };
        let load = move |progress: &Progress| {
            core::Engine::load(&options, &mut |done, total| progress.report(done, total))
        };
        Ok(Self(Local::new(in_thread(py, load, progress)?)))
    }

    /// Token ids of a text; with `specials`, control tokens written out in it are such tokens, and
    /// the one that begins a sequence is put in front if the model expects it. A text that is to
    /// become a `prompt` may not be longer than a context of the longest tokens.
    fn encode(
        &self,
        py: Python<'_>,
        text: String,
        specials: bool,
        prompt: bool,
    ) -> PyResult<Vec<u32>> {
        outside(py, || {
            self.0.check_alive()?;
            if prompt { self.0.check_prompt_bytes(text.len()) } else { Ok(()) }
        })?;
        let tokenizer = Arc::clone(self.0.tokenizer());
        interruptible(py, text.len(), move || {
            Ok(if specials {
                tokenizer.encode(&text, Specials::Parse, tokenizer.add_bos())
            } else {
                tokenizer.encode(&text, Specials::AsText, false)
            })
        })
    }

    /// The text of token ids; ids beyond the vocabulary have none.
    #[expect(clippy::needless_pass_by_value, reason = "a Python list has no slice to lend")]
    fn decode(&self, py: Python<'_>, token_ids: Vec<u32>, skip_special: bool) -> PyResult<String> {
        outside(py, || {
            self.0.check_alive()?;
            Ok(self.0.tokenizer().decode(&token_ids, skip_special))
        })
    }

    /// Text and token ids of a conversation, given as a JSON array of messages, by the template
    /// given or the model's own. The ids are safe: no text of a message is a control token.
    fn chat_prompt(
        &self,
        py: Python<'_>,
        messages: String,
        template: Option<&str>,
        add_generation_prompt: bool,
    ) -> PyResult<(String, Vec<u32>)> {
        let template = outside(py, || {
            self.0.check_alive()?;
            match template {
                Some(source) => self.0.compile_template(source).map(Arc::new),
                None => self.0.template().cloned(),
            }
        })?;
        let max_bytes = self.0.max_prompt_bytes();
        let options = ChatOptions { add_generation_prompt, max_bytes, ..ChatOptions::default() };
        interruptible(py, messages.len(), move || {
            let messages: Vec<Value> =
                serde_json::from_str(&messages).map_err(|error| no_messages(&error))?;
            let prompt = template.render(&messages, &options)?;
            Ok((prompt.text, prompt.token_ids))
        })
    }

    /// Queue a prompt for `params.n` answers, which `ready` announces by `tag`.
    #[pyo3(signature = (prompt_token_ids, params, ready = None, tag = 0))]
    fn submit(
        &self,
        py: Python<'_>,
        prompt_token_ids: Vec<u32>,
        params: PySamplingParams,
        ready: Option<&ReadyQueue>,
        tag: u64,
    ) -> PyResult<Vec<Request>> {
        let notifier = ready.map(|ready| ready.notifier(tag));
        let encode = |text: &str| {
            self.0.check_prompt_bytes(text.len())?;
            Ok(self.0.tokenizer().encode(text, Specials::AsText, false))
        };
        let submit = || {
            let n = params.n;
            let params = params.convert(self.0.max_model_len(), encode)?;
            self.0.submit_all(prompt_token_ids, params, n, notifier.as_ref())
        };
        Ok(outside(py, submit)?.into_iter().map(Request::from).collect())
    }

    /// Sums over all steps up to the last border; `reset` starts them anew.
    fn metrics(&self, py: Python<'_>, reset: bool) -> PyResult<PyEngineMetrics> {
        outside(py, || self.0.metrics(reset)).map(Into::into)
    }

    /// End the engine after the step in flight; open requests get `ClosedError`. A second call does
    /// nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        outside(py, || {
            self.0.close();
            Ok(())
        })
    }

    /// Positions of a context, prompt and answer together.
    #[getter]
    fn max_model_len(&self) -> usize {
        self.0.max_model_len()
    }

    /// Size of the model's vocabulary.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.vocab()
    }

    /// Tokens that end an answer, ascending.
    #[getter]
    fn end_token_ids(&self) -> Vec<u32> {
        self.0.tokenizer().end_ids().to_vec()
    }

    /// Token that begins a sequence.
    #[getter]
    fn bos_token_id(&self) -> Option<u32> {
        self.0.tokenizer().bos_id()
    }

    /// Token that ends a sequence.
    #[getter]
    fn eos_token_id(&self) -> Option<u32> {
        self.0.tokenizer().eos_id()
    }

    /// Bytes by part, and what the caches hold.
    #[getter]
    fn memory(&self) -> PyMemoryReport {
        self.0.memory().into()
    }
}

fn no_messages(error: &serde_json::Error) -> EngineError {
    EngineError::Config {
        field: "messages",
        found: format!("unreadable ({error})"),
        expected: "a list of JSON objects".to_owned(),
    }
}

impl Drop for Engine {
    /// An engine that nobody closed ends on a thread of its own: the drop runs with the GIL, and
    /// the step in flight may take a second.
    fn drop(&mut self) {
        if let Some(engine) = self.0.take() {
            // If there can be no thread, the engine is dropped here.
            let _ = thread::Builder::new().spawn(move || drop(engine));
        }
    }
}
