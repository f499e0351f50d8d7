//! Exact enumeration: runs code that draws at random once for every way the draws can come out, and
//! adds up the probabilities as rationals. What comes out is the law of the code, not an estimate.

use std::collections::BTreeMap;

use specdec_core::chances::{Chances, Draw, Draws};
use specdec_core::{Law, Number, TokenId};

use crate::rational::Rational;

/// One open decision: the outcomes of positive probability not yet explored, the current one last.
#[derive(Debug, Clone)]
struct Decision {
    open: Vec<(usize, Rational)>,
}

/// Randomness that explores every branch, depth first.
#[derive(Debug, Clone, Default)]
pub struct Branches {
    decisions: Vec<Decision>,
    /// Decisions taken so far in this run.
    taken: usize,
}

impl Branches {
    /// Takes outcome i with probability `probabilities[i]`; they sum to 1.
    ///
    /// # Panics
    /// If they do not.
    pub fn choose(&mut self, probabilities: &[Rational]) -> usize {
        if self.taken == self.decisions.len() {
            assert_eq!(Rational::sum(probabilities), Rational::one(), "{probabilities:?}");
            let outcomes = probabilities.iter().cloned().enumerate();
            let open = outcomes.filter(|(_, p)| *p > Rational::zero()).collect();
            self.decisions.push(Decision { open });
        }
        self.taken += 1;
        self.decisions[self.taken - 1].open.last().expect("an outcome is open").0
    }

    /// Probability of this run.
    fn weight(&self) -> Rational {
        let current = self.decisions.iter().map(|d| d.open.last().expect("open").1.clone());
        current.fold(Rational::one(), |product, p| product * p)
    }

    /// Moves to the next run; false when there is none.
    fn advance(&mut self) -> bool {
        assert_eq!(self.taken, self.decisions.len(), "a replayed run must take the same decisions");
        self.taken = 0;
        while let Some(last) = self.decisions.last_mut() {
            last.open.pop();
            if !last.open.is_empty() {
                return true;
            }
            self.decisions.pop();
        }
        false
    }
}

/// The law of what `run` returns, over all outcomes of its draws.
///
/// `run` must depend on nothing but the draws.
pub fn enumerate<T: Ord>(mut run: impl FnMut(&mut Branches) -> T) -> BTreeMap<T, Rational> {
    let mut law = BTreeMap::new();
    let mut branches = Branches::default();
    loop {
        let outcome = run(&mut branches);
        let weight = branches.weight();
        *law.entry(outcome).or_insert_with(Rational::zero) += weight;
        if !branches.advance() {
            return law;
        }
    }
}

impl Draws<Rational> for Branches {
    fn draw(&mut self, _draw: Draw, _position: usize, law: &Law<Rational>) -> TokenId {
        let (tokens, probabilities): (Vec<_>, Vec<_>) =
            law.iter().map(|(token, w)| (token, w.clone() / law.total().clone())).unzip();
        tokens[self.choose(&probabilities)]
    }
}

impl Chances<Rational> for Branches {
    fn accept(&mut self, _draw: Draw, p: &Rational, q: &Rational) -> bool {
        let yes = if p >= q { Rational::one() } else { p.clone() / q.clone() };
        self.choose(&[yes.clone(), Rational::one() - yes]) == 0
    }
}
