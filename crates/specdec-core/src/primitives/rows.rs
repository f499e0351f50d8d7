//! Rows of probabilities in whatever form the caller holds them.

use super::PrimitiveError;
use crate::{Law, LawError, TokenId, math};

/// A table of numbers, read row by row.
pub trait Rows {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// Numbers of a row.
    fn width(&self) -> usize;

    /// How far from 1 rounding to the type of these numbers may bring the sum of a law.
    fn rounding(&self) -> f64;

    /// Writes a row into `out`, whatever it held.
    fn read(&self, row: usize, out: &mut Vec<f64>);
}

/// Rows that are laws, with the name that errors call them by.
pub struct Table<'a> {
    name: &'static str,
    rows: &'a dyn Rows,
    columns: Option<Columns<'a>>,
}

/// What the columns of a table stand for, where it leaves out tokens that no row can produce.
#[derive(Debug, Clone, Copy)]
struct Columns<'a> {
    ids: &'a [TokenId],
    vocab: usize,
}

impl<'a> Table<'a> {
    /// Rows over the whole vocabulary: column i is token i.
    pub fn dense(name: &'static str, rows: &'a dyn Rows) -> Self {
        Self { name, rows, columns: None }
    }

    /// Rows over the tokens `ids` of `vocab`; all others have probability 0.
    ///
    /// # Errors
    /// Ids that do not ascend below `vocab`, or are not one for each column.
    pub fn sparse(
        name: &'static str,
        rows: &'a dyn Rows,
        ids: &'a [TokenId],
        vocab: usize,
    ) -> Result<Self, PrimitiveError> {
        let ascend = ids.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = ids.last().is_none_or(|&id| (id as usize) < vocab);
        if !ascend || !inside || ids.len() != rows.width() {
            return Err(PrimitiveError::Columns { name, ids: ids.len(), width: rows.width() });
        }
        Ok(Self { name, rows, columns: Some(Columns { ids, vocab }) })
    }

    /// Size of the vocabulary.
    pub(super) fn vocab(&self) -> usize {
        self.columns.map_or(self.rows.width(), |columns| columns.vocab)
    }

    /// Checks the number of rows, that their width is `like`'s, and that each is a law.
    pub(super) fn expect(&self, rows: usize, like: Option<&Table>) -> Result<(), PrimitiveError> {
        let Self { name, .. } = *self;
        if self.rows.rows() != rows {
            let found = self.rows.rows();
            return Err(PrimitiveError::Rows { name, found, expected: rows });
        }
        // Without a row there is no width to compare.
        if let Some(other) = like.filter(|_| rows > 0)
            && other.vocab() != self.vocab()
        {
            let (found, expected) = (self.vocab(), other.vocab());
            return Err(PrimitiveError::Width { name, found, expected });
        }
        let mut values = Vec::new();
        (0..rows).try_for_each(|row| self.check(row, &mut values))
    }

    fn check(&self, row: usize, values: &mut Vec<f64>) -> Result<(), PrimitiveError> {
        let Self { name, .. } = *self;
        self.rows.read(row, values);
        let usable = |p: &f64| (0.0..=f64::MAX).contains(p);
        // Without an early end, so that the compiler takes several at a time.
        if !values.iter().fold(true, |all, p| all & usable(p))
            && let Some(at) = values.iter().position(|p| !usable(p))
        {
            let (token, value) = (self.id(at), values[at]);
            return Err(PrimitiveError::Probability { name, row, token, value });
        }
        let sum = math::sum(values);
        let most = self.rows.rounding();
        if (sum - 1.0).abs() > most {
            return Err(PrimitiveError::Sum { name, row, sum, most });
        }
        Ok(())
    }

    /// The law of a row, sparse where most tokens are impossible.
    pub(super) fn law(&self, row: usize) -> Result<Law, LawError> {
        let mut values = Vec::new();
        self.rows.read(row, &mut values);
        let possible = values.iter().filter(|p| **p > 0.0).count();
        if self.columns.is_none() && 2 * possible > values.len() {
            return Law::from_dense(values);
        }
        let kept = values.iter().enumerate().filter(|(_, p)| **p > 0.0);
        let (ids, weights) = kept.map(|(at, &p)| (self.id(at), p)).unzip();
        Law::from_sparse(ids, weights)
    }

    /// The likeliest token of a row, the lowest id on ties.
    pub(super) fn likeliest(&self, row: usize) -> TokenId {
        let mut values = Vec::new();
        self.rows.read(row, &mut values);
        let mut best = 0;
        for (at, value) in values.iter().enumerate() {
            if *value > values[best] {
                best = at;
            }
        }
        self.id(best)
    }

    fn id(&self, at: usize) -> TokenId {
        self.columns.map_or(at as TokenId, |columns| columns.ids[at])
    }
}
