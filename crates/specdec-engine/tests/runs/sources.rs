//! Every kind of drafter, for tests that hold for all of them.

use super::open;
use specdec_core::{Ask, DraftError, Drafter, Ngram};
use specdec_engine::draft::{ModelDrafter, ModelDrafterSizes};
use specdec_testkit::gguf::TinyModel;
use specdec_testkit::scripted::{Scripted, Scripts};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Where drafts come from; `plain` is the answer that the scripted drafter knows.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    NgramChain,
    NgramTree,
    ScriptedChain,
    ScriptedTree,
    ModelChain,
    ModelTree,
}

impl Source {
    pub const ALL: [Self; 6] = [
        Self::NgramChain,
        Self::NgramTree,
        Self::ScriptedChain,
        Self::ScriptedTree,
        Self::ModelChain,
        Self::ModelTree,
    ];

    /// What drafts for request `id` alone.
    pub fn own(self, id: u64, plain: &[u32], vocab: usize, salt: u64) -> Option<Box<dyn Drafter>> {
        let script = |branching| {
            let script = Scripted::new(plain.to_vec(), vocab, branching, salt);
            Box::new(Scripts(HashMap::from([(id, script)]))) as Box<dyn Drafter>
        };
        match self {
            Self::NgramChain => Some(Box::new(Ngram::new(1, 3, 1).unwrap())),
            Self::NgramTree => Some(Box::new(Ngram::new(1, 3, 3).unwrap())),
            Self::ScriptedChain => Some(script(1)),
            Self::ScriptedTree => Some(script(3)),
            Self::ModelChain | Self::ModelTree => None,
        }
    }

    /// What drafts for all requests: the model with half of its layers, on at most so many `pages`.
    pub fn shared(self, target: &TinyModel, prefill_rows: usize, pages: usize) -> Option<Shared> {
        let branching = match self {
            Self::ModelChain => 1,
            Self::ModelTree => 3,
            _ => return None,
        };
        let draft = TinyModel { layers: target.layers / 2, ..target.clone() };
        let (decoder, _) = open(&draft.temp_file(), |options| {
            options.prefill_rows = prefill_rows;
            // Rows with logits: eight requests of three branches.
            options.max_num_seqs = 24;
        });
        let sizes = ModelDrafterSizes {
            context: draft.context,
            vocab: draft.vocab,
            target_vocab: target.vocab,
            nodes: 8,
            branching,
            draws: true,
        };
        Some(Shared::new(ModelDrafter::new(decoder.limited(pages, true), sizes)))
    }
}

/// A draft model that a test can look into while a scheduler has it.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<ModelDrafter>>);

impl Shared {
    pub fn new(drafter: ModelDrafter) -> Self {
        Self(Arc::new(Mutex::new(drafter)))
    }

    pub fn lock(&self) -> MutexGuard<'_, ModelDrafter> {
        self.0.lock().unwrap()
    }
}

impl Drafter for Shared {
    fn propose(&mut self, asks: &mut [Ask<'_>]) -> Result<(), DraftError> {
        self.lock().propose(asks)
    }

    fn commit(&mut self, id: u64, path: &[usize]) -> Result<(), DraftError> {
        self.lock().commit(id, path)
    }

    fn release(&mut self, id: u64) {
        self.lock().release(id);
    }
}
