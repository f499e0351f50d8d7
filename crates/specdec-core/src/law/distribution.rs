//! [`Law`]: the distribution of one token, as verifiers see it.

use crate::{LawError, Number, TokenId};

/// The distribution of one token: non-negative weights over ascending ids, and their sum.
///
/// The weights need not be normalised: the probability of x is `weight(x) / total`. A dense law
/// covers ids `0..len`; a sparse one lists its ids, all others have probability 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Law<N = f64> {
    /// Ids of the weights; empty when `dense`.
    ids: Vec<TokenId>,
    dense: bool,
    weights: Vec<N>,
    total: N,
}

/// Weights summed at a time where a law is searched or summed in part.
const BLOCK: usize = 512;

impl<N: Number> Law<N> {
    /// All of the probability on one token.
    pub fn one_hot(token: TokenId) -> Self {
        Self { ids: vec![token], dense: false, weights: vec![N::one()], total: N::one() }
    }

    /// Weights of the tokens `0..weights.len()`.
    ///
    /// # Errors
    /// A weight that is NaN, infinite or negative; no positive weight.
    pub fn from_dense(weights: Vec<N>) -> Result<Self, LawError> {
        let total = check(&weights, |i| i as TokenId)?;
        Ok(Self { ids: Vec::new(), dense: true, weights, total })
    }

    /// Weights of the tokens `ids`, which must ascend.
    ///
    /// # Errors
    /// As [`Law::from_dense`]; ids that do not ascend; another number of ids than of weights.
    pub fn from_sparse(ids: Vec<TokenId>, weights: Vec<N>) -> Result<Self, LawError> {
        if ids.len() != weights.len() {
            return Err(LawError::Length { ids: ids.len(), weights: weights.len() });
        }
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(LawError::Order { previous: pair[0], next: pair[1] });
        }
        let total = check(&weights, |i| ids[i])?;
        Ok(Self { ids, dense: false, weights, total })
    }

    /// Probability of `token`.
    pub fn prob(&self, token: TokenId) -> N {
        self.weight(token) / self.total.clone()
    }

    /// Weight of `token`: its probability times [`Law::total`].
    pub fn weight(&self, token: TokenId) -> N {
        self.index(token).map_or_else(N::zero, |i| self.weights[i].clone())
    }

    fn index(&self, token: TokenId) -> Option<usize> {
        if self.dense {
            Some(token as usize).filter(|&i| i < self.weights.len())
        } else {
            self.ids.binary_search(&token).ok()
        }
    }

    /// Sum of all weights, always positive.
    pub fn total(&self) -> &N {
        &self.total
    }

    /// The law given that none of `tokens` occurs, or `None` if that leaves nothing.
    #[must_use]
    pub fn without(&self, tokens: &[TokenId]) -> Option<Self> {
        let left = self.iter().filter(|(id, _)| !tokens.contains(id));
        let (ids, weights) = left.map(|(id, weight)| (id, weight.clone())).unzip();
        Self::from_sparse(ids, weights).ok()
    }

    /// The total of [`Law::without`], without a copy of the law; 0 if nothing is left.
    ///
    /// Subtracted where that is accurate, else summed anew: where `tokens` have nearly all of the
    /// weight, the difference is all rounding.
    pub fn left(&self, tokens: &[TokenId]) -> N {
        let distinct = tokens.iter().enumerate().filter(|(i, token)| !tokens[..*i].contains(token));
        let taken: Vec<N> = distinct.map(|(_, &token)| self.weight(token)).collect();
        let taken = N::sum(&taken);
        let left = self.total.clone() - taken.clone();
        if left >= taken {
            return left;
        }
        let blocks = self.weights.chunks(BLOCK).enumerate();
        let sums: Vec<N> = blocks.map(|(i, block)| self.block_sum(i, block, tokens)).collect();
        N::sum(&sums)
    }

    /// The sum of a block of weights without those of `tokens`.
    fn block_sum(&self, block: usize, weights: &[N], tokens: &[TokenId]) -> N {
        let first = block * BLOCK;
        let here = |&token: &TokenId| {
            self.index(token).and_then(|i| i.checked_sub(first)).filter(|&i| i < weights.len())
        };
        let gone: Vec<usize> = tokens.iter().filter_map(here).collect();
        if gone.is_empty() {
            return N::sum(weights);
        }
        let mut left = weights.to_vec();
        for i in gone {
            left[i] = N::zero();
        }
        N::sum(&left)
    }

    /// (scale * p - q)+, p being this law and q another over `total` without the tokens `taken`; its
    /// total is its mass before it is normalised. `None` where it is zero everywhere.
    ///
    /// Whole vectors at a time where both are dense: an uncut law has all of the vocabulary.
    pub(crate) fn excess(&self, scale: &N, q: &Self, taken: &[TokenId], total: &N) -> Option<Self> {
        let part = |weight: &N| scale.clone() * (weight.clone() / self.total.clone());
        let take = |part: &mut N, weight: &N| {
            let rest = part.clone() - weight.clone() / total.clone();
            *part = if rest > N::zero() { rest } else { N::zero() };
        };
        let mut weights: Vec<N> = self.weights.iter().map(part).collect();
        if self.dense && q.dense {
            weights.iter_mut().zip(&q.weights).for_each(|(part, weight)| take(part, weight));
        } else {
            for (token, weight) in q.iter() {
                if let Some(i) = self.index(token) {
                    take(&mut weights[i], weight);
                }
            }
        }
        for i in taken.iter().filter_map(|&token| self.index(token)) {
            weights[i] = part(&self.weights[i]);
        }
        let total = N::sum(&weights);
        let some = total > N::zero();
        some.then(|| Self { ids: self.ids.clone(), dense: self.dense, weights, total })
    }

    /// The law with other weights for the same tokens, or `None` if none of them is positive.
    pub(crate) fn reweighted(&self, mut weight: impl FnMut(TokenId, &N) -> N) -> Option<Self> {
        let weights: Vec<N> = self.iter().map(|(token, old)| weight(token, old)).collect();
        let total = check(&weights, |i| self.id(i)).ok()?;
        Some(Self { ids: self.ids.clone(), dense: self.dense, weights, total })
    }

    /// Tokens and weights by ascending id; weights of 0 may occur.
    pub fn iter(&self) -> impl Iterator<Item = (TokenId, &N)> {
        self.weights.iter().enumerate().map(|(i, weight)| (self.id(i), weight))
    }

    /// Number of weights held, an upper bound of the number of possible tokens.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Always false: a law holds at least one token.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// The only possible token, if there is just one.
    pub fn only_token(&self) -> Option<TokenId> {
        let mut possible = self.iter().filter(|(_, weight)| **weight > N::zero());
        let first = possible.next()?.0;
        possible.next().is_none().then_some(first)
    }

    /// Whether one token has all of the probability.
    pub fn is_one_hot(&self) -> bool {
        self.only_token().is_some()
    }

    fn id(&self, index: usize) -> TokenId {
        if self.dense { index as TokenId } else { self.ids[index] }
    }
}

impl Law<f64> {
    /// Weights of the tokens `0..len`, if the law is dense.
    pub(crate) fn dense_weights(&self) -> Option<&[f64]> {
        self.dense.then_some(&self.weights)
    }

    /// The first token, `taken` ones left out, at which the cumulated weight exceeds `target`; the
    /// last possible one where rounding leaves the whole mass a hair under it.
    pub(crate) fn quantile(&self, target: f64, taken: &[TokenId]) -> TokenId {
        let mut mass = 0.0;
        let mut last = 0;
        for (i, block) in self.weights.chunks(BLOCK).enumerate() {
            let sum = self.block_sum(i, block, taken);
            // The last block with any weight is searched whatever the rounding of the sums says.
            if sum <= 0.0 {
                continue;
            }
            if mass + sum <= target {
                (mass, last) = (mass + sum, i);
                continue;
            }
            return self.search(i, mass, target, taken);
        }
        self.search(last, f64::NEG_INFINITY, target, taken)
    }

    /// The token of [`Law::quantile`] within a block, `mass` being what comes before it.
    fn search(&self, block: usize, mut mass: f64, target: f64, taken: &[TokenId]) -> TokenId {
        let first = block * BLOCK;
        let mut found = self.id(first);
        for (i, &weight) in self.weights[first..].iter().take(BLOCK).enumerate() {
            let token = self.id(first + i);
            if weight > 0.0 && !taken.contains(&token) {
                mass += weight;
                found = token;
                if target < mass {
                    break;
                }
            }
        }
        found
    }

    /// Lets `fill` write a law into this one's buffers, so that a law per row costs no allocation;
    /// it finds no ids there, and old weights.
    pub(crate) fn rewrite(
        &mut self,
        fill: impl FnOnce(&mut Vec<TokenId>, &mut Vec<f64>) -> (bool, f64),
    ) {
        self.ids.clear();
        (self.dense, self.total) = fill(&mut self.ids, &mut self.weights);
    }

    /// Makes index i stand for token `names[i]`; the names ascend.
    pub(crate) fn rename(&mut self, names: &[TokenId]) {
        if self.dense {
            self.ids.extend_from_slice(names);
            self.dense = false;
        } else {
            self.ids.iter_mut().for_each(|id| *id = names[*id as usize]);
        }
    }
}

/// The sum of the weights, once all of them are usable.
fn check<N: Number>(weights: &[N], id: impl Fn(usize) -> TokenId) -> Result<N, LawError> {
    let usable = |weight: &N| weight.is_finite() && *weight >= N::zero();
    if let Some(i) = weights.iter().position(|weight| !usable(weight)) {
        return Err(LawError::Weight { token: id(i), value: format!("{:?}", weights[i]) });
    }
    let total = N::sum(weights);
    if total > N::zero() && total.is_finite() {
        Ok(total)
    } else {
        Err(LawError::NoToken { len: weights.len() })
    }
}
