//! How an engine speculates: the sources of drafts, their budget, the rule of acceptance.

use crate::error::EngineError;
use crate::request::SamplingParams;
use specdec_core::{Budget, Method, Ngram};
use specdec_kernels::Target;
use std::path::PathBuf;

/// Most nodes of one tree that the engine takes (every node is a row with logits).
pub const MAX_SPECULATIVE_TOKENS: usize = 64;

/// Where drafts come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A second model: its GGUF file.
    DraftModel(PathBuf),
    /// Prompt lookup.
    Ngram,
}

/// Sources of drafts with a fixed width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speculation {
    /// At least one source, each kind once. Drafts of all are merged into one tree, a draft model's
    /// first.
    pub sources: Vec<Source>,
    /// Most nodes per step, 1 to [`MAX_SPECULATIVE_TOKENS`].
    pub num_speculative_tokens: usize,
    /// Shortest suffix that may match, at least 1.
    pub prompt_lookup_min: usize,
    /// Longest suffix looked up.
    pub prompt_lookup_max: usize,
    /// 1: a chain. More: a tree of up to this many matches, with up to this many tokens of the draft
    /// model on each level.
    pub branching_factor: usize,
    /// Longest path of a tree; the node budget when `None`.
    pub tree_depth: Option<usize>,
    /// Rule for requests without a seed at a temperature above 0; `None`: the best exact one.
    pub method: Option<Method>,
    /// Whether a draft model draws its tokens for sampled requests, from a law that is kept whole;
    /// else it proposes its likeliest.
    pub draws: bool,
    /// Format to which a draft model's weights are quantised at load; `None`: the file's.
    pub quantization: Option<Target>,
    /// Whether the engine chose the sources: a draft model without room in the memory budget is then
    /// left out, and no error.
    pub automatic: bool,
}

impl Default for Speculation {
    fn default() -> Self {
        Self {
            sources: vec![Source::Ngram],
            num_speculative_tokens: 4,
            prompt_lookup_min: 2,
            prompt_lookup_max: 5,
            branching_factor: 1,
            tree_depth: None,
            method: None,
            draws: true,
            quantization: None,
            automatic: false,
        }
    }
}

impl Speculation {
    /// Checks every field before anything is loaded.
    ///
    /// # Errors
    /// [`EngineError::Config`] naming the field.
    pub fn validate(&self) -> Result<(), EngineError> {
        let refuse = |field, found: String, expected: String| {
            Err(EngineError::Config { field, found, expected })
        };
        let nodes = self.num_speculative_tokens;
        if nodes == 0 || nodes > MAX_SPECULATIVE_TOKENS {
            let expected = format!("1..={MAX_SPECULATIVE_TOKENS}");
            return refuse("num_speculative_tokens", nodes.to_string(), expected);
        }
        if self.tree_depth == Some(0) {
            return refuse("tree_depth", "0".to_owned(), "at least 1".to_owned());
        }
        let drafts = self.draft_models().count();
        if self.sources.is_empty() || drafts > 1 || self.sources.len() - drafts > 1 {
            let expected = "at least one source, each kind once".to_owned();
            return refuse("method", format!("{} sources", self.sources.len()), expected);
        }
        self.ngram().map(drop)
    }

    /// The file of the draft model, if there is to be one.
    pub fn draft_model(&self) -> Option<&PathBuf> {
        self.draft_models().next()
    }

    fn draft_models(&self) -> impl Iterator<Item = &PathBuf> {
        self.sources.iter().filter_map(|source| match source {
            Source::DraftModel(path) => Some(path),
            Source::Ngram => None,
        })
    }

    /// The same without a draft model; `None` if nothing is left.
    pub(crate) fn without_draft_model(&self) -> Option<Self> {
        let sources: Vec<Source> =
            self.sources.iter().filter(|source| **source == Source::Ngram).cloned().collect();
        (!sources.is_empty()).then(|| Self { sources, ..self.clone() })
    }

    /// The prompt lookup, if there is to be one.
    ///
    /// # Errors
    /// [`EngineError::Parameter`] for lookup lengths that contradict each other.
    pub fn ngram(&self) -> Result<Option<Ngram>, EngineError> {
        let ngram =
            Ngram::new(self.prompt_lookup_min, self.prompt_lookup_max, self.branching_factor)?;
        Ok(self.sources.contains(&Source::Ngram).then_some(ngram))
    }

    /// Most nodes of one tree that come from a draft model: half of them where prompt lookup wants
    /// some too.
    pub fn draft_nodes(&self) -> usize {
        let nodes = self.num_speculative_tokens;
        if self.sources.contains(&Source::Ngram) { nodes.div_ceil(2) } else { nodes }
    }

    /// Most nodes and most depth of one tree.
    pub fn budget(&self) -> Budget {
        let nodes = self.num_speculative_tokens;
        Budget { nodes, depth: self.tree_depth.unwrap_or(nodes).min(nodes) }
    }

    /// The rule of acceptance of a request: greedy at temperature 0; `coupled` with a seed, so that
    /// the text is a function of the seed; else what the configuration says, or the best exact one:
    /// `traversal` (`block`, on a chain) where tokens are drawn, zero-and-renormalise elsewhere.
    pub fn method(speculation: Option<&Self>, params: &SamplingParams) -> Method {
        if params.sampling.is_greedy() {
            return Method::Greedy;
        }
        if params.seed.is_some() {
            return Method::Coupled;
        }
        let Some(speculation) = speculation else { return Method::Standard };
        let drawn = speculation.draws && speculation.draft_model().is_some();
        let best = if drawn { Method::Traversal } else { Method::Standard };
        speculation.method.unwrap_or(best)
    }
}
