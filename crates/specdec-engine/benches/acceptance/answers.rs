//! Answers of an engine with a draft model.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use specdec_core::{Method, Sampling, SpecStats, TokenId};
use specdec_engine::load::template::{ChatOptions, message};
use specdec_engine::load::{ChatTemplate, Gguf, Tokenizer};
use specdec_engine::speculate::Source;
use specdec_engine::{Engine, EngineOptions, Event, RequestHandle, SamplingParams, Speculation};

use crate::Failure;

/// Answers that share a step.
const BATCH: usize = 6;
/// Positions of a context.
pub(crate) const CONTEXT: usize = 2048;

/// What is drafted in a step.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) nodes: usize,
    pub(crate) branching: usize,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.branching {
            1 => format!("chain of {}", self.nodes),
            width => format!("tree of {}, {width} wide", self.nodes),
        };
        f.pad(&text)
    }
}

/// A target, its draft and the length of answers.
pub(crate) struct Pair<'a> {
    pub(crate) target: &'a Path,
    pub(crate) draft: &'a Path,
    pub(crate) tokens: usize,
}

/// An answer and what became of its drafts.
pub(crate) struct Answer {
    pub(crate) prompt: Vec<TokenId>,
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) stats: SpecStats,
}

impl Pair<'_> {
    /// The prompts of files, each the only turn of a conversation.
    pub(crate) fn prompts(&self, files: &[String]) -> Result<Vec<Vec<TokenId>>, Failure> {
        let file = Gguf::open(self.target)?;
        let tokenizer = std::sync::Arc::new(Tokenizer::from_gguf(file.header())?);
        let template = ChatTemplate::from_gguf(file.header(), tokenizer)?;
        let template = template.ok_or("the target has no chat template")?;
        let options = ChatOptions { add_generation_prompt: true, ..ChatOptions::default() };
        let render = |file: &String| {
            let text = std::fs::read_to_string(file)?;
            Ok(template.render(&[message("user", text.trim_end())], &options)?.token_ids)
        };
        files.iter().map(render).collect()
    }

    /// An engine that drafts so and verifies so.
    pub(crate) fn engine(&self, method: Method, shape: Shape) -> Result<Engine, Failure> {
        let mut options = EngineOptions::new(self.target);
        options.max_num_seqs = BATCH;
        options.max_model_len = Some(CONTEXT);
        options.speculation = Some(Speculation {
            sources: vec![Source::DraftModel(self.draft.into())],
            num_speculative_tokens: shape.nodes,
            branching_factor: shape.branching,
            method: Some(method),
            ..Speculation::default()
        });
        Ok(Engine::load(&options, &mut |_, _| ())?)
    }

    /// An answer to each prompt at a temperature, the rest of the law uncut.
    pub(crate) fn ask(
        &self,
        engine: &Engine,
        prompts: &[Vec<TokenId>],
        temperature: f64,
    ) -> Result<Vec<Answer>, Failure> {
        let params = SamplingParams {
            sampling: Sampling { temperature, ..Sampling::default() },
            max_tokens: self.tokens,
            ..SamplingParams::default()
        };
        let submit = |prompt: &Vec<TokenId>| engine.submit(prompt.clone(), params.clone());
        let handles: Vec<_> = prompts.iter().map(submit).collect::<Result<_, _>>()?;
        let wait = |(handle, prompt): (RequestHandle, &Vec<TokenId>)| {
            let (tokens, stats) = wait(&handle)?;
            Ok(Answer { prompt: prompt.clone(), tokens, stats })
        };
        handles.into_iter().zip(prompts).map(wait).collect()
    }
}

fn wait(handle: &RequestHandle) -> Result<(Vec<TokenId>, SpecStats), Failure> {
    let mut tokens = Vec::new();
    loop {
        match handle.recv_timeout(Duration::from_secs(1))? {
            None => {}
            Some(Event::Chunk(chunk)) => tokens.extend(chunk.token_ids),
            Some(Event::Done(chunk, end)) => {
                tokens.extend(chunk.token_ids);
                return Ok((tokens, end.metrics.speculation));
            }
            Some(Event::Failed(error)) => return Err(error.into()),
        }
    }
}
