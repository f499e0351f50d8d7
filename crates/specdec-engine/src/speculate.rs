//! How an engine speculates: the drafter, its budget, the rule of acceptance.

use crate::error::EngineError;
use crate::request::SamplingParams;
use specdec_core::{Budget, Drafter, Method, Ngram};

/// Most nodes of one tree that the engine takes (every node is a row with logits).
pub const MAX_SPECULATIVE_TOKENS: usize = 64;

/// Prompt lookup with a fixed width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speculation {
    /// Most nodes per step, 1 to [`MAX_SPECULATIVE_TOKENS`].
    pub num_speculative_tokens: usize,
    /// Shortest suffix that may match, at least 1.
    pub prompt_lookup_min: usize,
    /// Longest suffix looked up.
    pub prompt_lookup_max: usize,
    /// 1: a chain of the best match. More: up to this many matches, merged into a tree.
    pub branching_factor: usize,
    /// Longest path of a tree; the node budget when `None`.
    pub tree_depth: Option<usize>,
    /// Rule for requests without a seed at a temperature above 0; `None`: the best exact one.
    pub method: Option<Method>,
}

impl Default for Speculation {
    fn default() -> Self {
        Self {
            num_speculative_tokens: 4,
            prompt_lookup_min: 2,
            prompt_lookup_max: 5,
            branching_factor: 1,
            tree_depth: None,
            method: None,
        }
    }
}

impl Speculation {
    /// Checks every field before anything is loaded.
    ///
    /// # Errors
    /// [`EngineError::Config`] naming the field.
    pub fn validate(&self) -> Result<(), EngineError> {
        let nodes = self.num_speculative_tokens;
        if nodes == 0 || nodes > MAX_SPECULATIVE_TOKENS {
            return Err(EngineError::Config {
                field: "num_speculative_tokens",
                found: nodes.to_string(),
                expected: format!("1..={MAX_SPECULATIVE_TOKENS}"),
            });
        }
        if self.tree_depth == Some(0) {
            return Err(EngineError::Config {
                field: "tree_depth",
                found: "0".to_owned(),
                expected: "at least 1".to_owned(),
            });
        }
        self.drafter().map(drop)
    }

    /// A fresh drafter.
    ///
    /// # Errors
    /// [`EngineError::Config`] for lookup lengths that contradict each other.
    pub fn drafter(&self) -> Result<Box<dyn Drafter + Send>, EngineError> {
        let ngram =
            Ngram::new(self.prompt_lookup_min, self.prompt_lookup_max, self.branching_factor);
        ngram.map(|ngram| Box::new(ngram) as Box<dyn Drafter + Send>).map_err(EngineError::from)
    }

    /// Most nodes and most depth of one tree.
    pub fn budget(&self) -> Budget {
        let nodes = self.num_speculative_tokens;
        Budget { nodes, depth: self.tree_depth.unwrap_or(nodes).min(nodes) }
    }

    /// The rule of acceptance of a request: greedy at temperature 0; `coupled` with a seed, so that
    /// the text is a function of the seed; else what the configuration says, or zero-and-renormalise.
    pub fn method(speculation: Option<&Self>, params: &SamplingParams) -> Method {
        if params.sampling.is_greedy() {
            Method::Greedy
        } else if params.seed.is_some() {
            Method::Coupled
        } else {
            speculation.and_then(|speculation| speculation.method).unwrap_or(Method::Standard)
        }
    }
}
