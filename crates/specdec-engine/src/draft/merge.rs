//! [`Merged`]: several sources that extend the same trees one after the other.

use specdec_core::{Ask, DraftError, Drafter};

/// Sources in the order in which they propose. Those that draw tokens must come first: then a token
/// by rule is a sibling after the drawn ones, and never one of them.
pub struct Merged(Vec<Box<dyn Drafter>>);

impl Merged {
    /// All of `sources` as one.
    pub fn new(sources: Vec<Box<dyn Drafter>>) -> Self {
        Self(sources)
    }

    /// Asks every source, also after a failure; the first failure is the answer.
    fn each(
        &mut self,
        mut ask: impl FnMut(&mut dyn Drafter) -> Result<(), DraftError>,
    ) -> Result<(), DraftError> {
        let outcomes: Vec<_> = self.0.iter_mut().map(|source| ask(source.as_mut())).collect();
        outcomes.into_iter().collect()
    }
}

impl Drafter for Merged {
    fn propose(&mut self, asks: &mut [Ask<'_>]) -> Result<(), DraftError> {
        self.each(|source| source.propose(asks))
    }

    fn commit(&mut self, id: u64, path: &[usize]) -> Result<(), DraftError> {
        self.each(|source| source.commit(id, path))
    }

    fn release(&mut self, id: u64) {
        self.0.iter_mut().for_each(|source| source.release(id));
    }
}
