//! One level of a draft tree: which children the nodes of the last level get.
//!
//! A greedy draft, and one whose tokens are not drawn, takes the likeliest continuations of all
//! nodes by the product of their probabilities. A drawn tree must decide *before* it draws (a token
//! that was drawn stays, whatever its probability), so it shares the children out by how likely the
//! place is to be reached, and draws each node's share without replacement, in order.

use specdec_core::chances::{Coupled, Draws, Independent};
use specdec_core::{Ask, Law, LawError, Method, Origin, TokenId, logprobs};
use specdec_kernels::SimdRows;
use std::borrow::Cow;
use std::sync::Arc;

/// Guess at how often a drawn child is rejected, so that its next sibling matters.
const REJECTED: f64 = 0.35;

/// A place where children can hang.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The node; `None`: the context.
    pub(super) node: Option<usize>,
    /// Guess at the probability that verification comes this far.
    pub(super) survival: f64,
}

/// Buffers for one row at a time.
#[derive(Default)]
pub(super) struct Scratch {
    ops: SimdRows,
    edited: specdec_core::Scratch,
    path: Vec<TokenId>,
}

impl Scratch {
    /// The draft's law of the token that follows `place`, by the processors of the target's.
    fn law(&mut self, ask: &Ask<'_>, place: Place, row: &[f32]) -> Result<Law, LawError> {
        ask.tree.tokens_to(place.node, &mut self.path);
        let prefix = ask.rule.history.then(&self.path);
        let mut q = Law::one_hot(0);
        ask.rule.processors.law(row, prefix, &mut self.ops, &mut self.edited, &mut q)?;
        Ok(q)
    }
}

/// Gives `places` up to `room` children in all, at most `width` each; row `i` of `rows` holds the
/// draft's logits at place `i`. Returns the children in the order in which they stand in the tree.
///
/// # Errors
/// A row that is no law. Children that stand in the tree already were drawn honestly.
pub(super) fn grow(
    ask: &mut Ask<'_>,
    places: &[Place],
    rows: &[Cow<'_, [f32]>],
    room: usize,
    width: usize,
    draws: bool,
    scratch: &mut Scratch,
) -> Result<Vec<Place>, LawError> {
    if !draws || ask.rule.method == Method::Greedy {
        return likeliest(ask, places, rows, room, width, scratch);
    }
    let mut grown = Vec::new();
    for (index, share) in shares(places, room, width).into_iter().enumerate() {
        if share > 0 {
            let q = scratch.law(ask, places[index], &rows[index])?;
            drawn(ask, places[index], &Arc::new(q), share, &mut grown);
        }
    }
    Ok(grown)
}

/// How many children each place gets: the best of all slots by survival, none of whose values
/// depends on what will be drawn there.
fn shares(places: &[Place], room: usize, width: usize) -> Vec<usize> {
    let slot =
        |index: usize, child: usize| (places[index].survival * REJECTED.powi(child as i32), index);
    let mut slots: Vec<(f64, usize)> =
        (0..places.len()).flat_map(|i| (0..width).map(move |c| slot(i, c))).collect();
    slots.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut shares = vec![0; places.len()];
    slots.iter().take(room).for_each(|&(_, index)| shares[index] += 1);
    shares
}

/// Draws `count` different children of `place` from `q`, one after the other.
fn drawn(ask: &mut Ask<'_>, place: Place, q: &Arc<Law>, count: usize, grown: &mut Vec<Place>) {
    let (key, committed) = (ask.rule.key, ask.context.len());
    let mut coupled = Coupled { key };
    let mut independent = Independent { key, committed: committed as u32 };
    let draws: &mut dyn Draws<f64> =
        if ask.rule.method == Method::Coupled { &mut coupled } else { &mut independent };
    let nodes = ask.tree.draw(place.node, q, count, committed, draws);
    grown.extend(nodes.into_iter().enumerate().map(|(before, node)| {
        let drawn = q.prob(ask.tree.token(node));
        let survival = place.survival * drawn * REJECTED.powi(before as i32);
        Place { node: Some(node), survival }
    }));
}

fn likeliest(
    ask: &mut Ask<'_>,
    places: &[Place],
    rows: &[Cow<'_, [f32]>],
    room: usize,
    width: usize,
    scratch: &mut Scratch,
) -> Result<Vec<Place>, LawError> {
    let mut best: Vec<(f64, usize, TokenId)> = Vec::new();
    for (index, (&place, row)) in places.iter().zip(rows).enumerate() {
        let q = scratch.law(ask, place, row)?;
        let heavier =
            |a: &(TokenId, &f64), b: &(TokenId, &f64)| a.1.total_cmp(b.1).then(b.0.cmp(&a.0));
        let Some((first, _)) = q.iter().max_by(heavier) else { continue };
        if width == 1 {
            best.push((place.survival, index, first));
            continue;
        }
        // The likeliest token is the law's; its runners-up are the model's own, which is quicker and
        // nearly as good: any choice is exact.
        let found = logprobs(row, first, width, &mut scratch.ops)?;
        let others = found.top.into_iter().filter(|&(token, _)| token != first);
        let all = std::iter::once((first, found.logprob)).chain(others).take(width);
        let score = |logprob: f32| place.survival * f64::from(logprob).exp();
        best.extend(all.map(|(token, logprob)| (score(logprob), index, token)));
    }
    best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    best.truncate(room);
    let mut grown = Vec::with_capacity(best.len());
    for (survival, index, token) in best {
        if let Ok(node) = ask.tree.push(places[index].node, token, Origin::Deterministic) {
            grown.push(Place { node: Some(node), survival });
        }
    }
    Ok(grown)
}
