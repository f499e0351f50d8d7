//! [`Ledger`]: the production randomness of the rejection family, watched: every counter it uses is
//! written down, and none may be used twice.

use std::collections::HashSet;

use specdec_core::chances::{Chances, Draw, Draws, Independent};
use specdec_core::rng::{Counter, Key};
use specdec_core::{Law, TokenId};

/// All counters used so far under one key seed, over all steps.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    used: HashSet<Counter>,
}

impl Ledger {
    /// The randomness of a step that starts with `committed` tokens of prompt + output.
    pub fn step(&mut self, key: Key, committed: u32) -> Watched<'_> {
        Watched { numbers: Independent { key, committed }, ledger: self }
    }

    /// Counters used.
    pub fn len(&self) -> usize {
        self.used.len()
    }

    /// Whether nothing was drawn.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }
}

/// [`Independent`] with its ledger.
#[derive(Debug)]
pub struct Watched<'a> {
    numbers: Independent,
    ledger: &'a mut Ledger,
}

impl Watched<'_> {
    fn record(&mut self, draw: Draw) {
        let new = self.ledger.used.insert(self.numbers.counter(draw));
        assert!(new, "counter of {draw:?} at {} was used before", self.numbers.committed);
    }
}

impl Draws<f64> for Watched<'_> {
    fn draw(&mut self, draw: Draw, position: usize, law: &Law) -> TokenId {
        self.record(draw);
        self.numbers.draw(draw, position, law)
    }
}

impl Chances<f64> for Watched<'_> {
    fn accept(&mut self, draw: Draw, p: &f64, q: &f64) -> bool {
        self.record(draw);
        self.numbers.accept(draw, p, q)
    }
}
