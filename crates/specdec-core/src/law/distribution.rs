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
        let mut weights = self.weights.clone();
        for index in tokens.iter().filter_map(|&token| self.index(token)) {
            weights[index] = N::zero();
        }
        N::sum(&weights)
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
    /// Lets `fill` write a law into this one's buffers, so that a law per row costs no allocation.
    pub(crate) fn rewrite(
        &mut self,
        fill: impl FnOnce(&mut Vec<TokenId>, &mut Vec<f64>) -> (bool, f64),
    ) {
        self.ids.clear();
        self.weights.clear();
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
