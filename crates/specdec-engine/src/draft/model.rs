//! [`ModelDrafter`]: a second, smaller model proposes.
//!
//! Its cache follows the text as the target's does: a token runs through the draft once, when it is
//! first needed, and its row is kept if the text takes it. All requests' rows of a level are one
//! pass; prompts are read chunk by chunk with the target's.

use super::grow::{Place, Scratch, grow};
use crate::cache::SeqCache;
use crate::error::EngineError;
use crate::model::{decoder::Decoder, rows::Row};
use specdec_core::{Ask, DraftError, Drafter};
use std::borrow::Cow;
use std::collections::HashMap;

/// What a [`ModelDrafter`] may do in one step.
#[derive(Clone, Copy, Debug)]
pub struct ModelDrafterSizes {
    /// Positions of the draft's context.
    pub context: usize,
    /// Ids that it shares with its target ([`super::check_vocabulary`]): the only ones proposed.
    pub vocab: usize,
    /// Rows of the target's embedding table.
    pub target_vocab: usize,
    /// Most nodes that it adds to one tree.
    pub nodes: usize,
    /// Most nodes that it adds to one level of one tree: 1 drafts chains.
    pub branching: usize,
    /// Whether tokens of sampled requests are drawn (and not the likeliest).
    pub draws: bool,
}

/// A model that drafts for another.
pub struct ModelDrafter {
    decoder: Decoder,
    sizes: ModelDrafterSizes,
    states: HashMap<u64, State>,
    scratch: Scratch,
}

/// What is kept of one request.
#[derive(Default)]
struct State {
    cache: SeqCache,
    /// Tail rows that hold known tokens.
    known: usize,
    /// Tail row of each node of the last tree, if it ran.
    rows: Vec<Option<usize>>,
}

/// A request in the step in hand.
struct Live<'c, 'a> {
    ask: &'c mut Ask<'a>,
    state: State,
    /// Its rows so far, by their number over all passes of the step.
    tail: Vec<usize>,
    /// Where children can hang, with the row of the last pass that has the logits.
    places: Vec<(Place, usize)>,
    /// Levels still to grow.
    levels: usize,
}

impl ModelDrafter {
    /// A drafter on a loaded model.
    pub fn new(decoder: Decoder, sizes: ModelDrafterSizes) -> Self {
        Self { decoder, sizes, states: HashMap::new(), scratch: Scratch::default() }
    }

    /// The draft model, for its limits and accounting.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// What the draft holds of request `id`.
    pub fn cache(&self, id: u64) -> Option<&SeqCache> {
        self.states.get(&id).map(|state| &state.cache)
    }

    /// The rows of one step, level by level.
    fn run(&mut self, lives: &mut [Live<'_, '_>]) -> Result<(), EngineError> {
        let mut rows = self.catch_up(lives);
        let mut first = 0;
        while !rows.is_empty() {
            let mut caches: Vec<_> = lives.iter_mut().map(|live| &mut live.state.cache).collect();
            if first == 0 {
                self.decoder.forward(&mut caches, &rows)?;
            } else {
                self.decoder.forward_on(&mut caches, &rows)?;
            }
            first += rows.len();
            rows = Vec::new();
            for (seq, live) in lives.iter_mut().enumerate() {
                self.grow(seq, live, first, &mut rows)?;
            }
        }
        Ok(())
    }

    /// Known tokens that the draft's caches lack: what drafts now goes first, prompts share the
    /// rest of the pass.
    fn catch_up(&mut self, lives: &mut [Live<'_, '_>]) -> Vec<Row> {
        let mut left = self.decoder.limits().0;
        let vocab = self.decoder.config().vocab as u32;
        let mut rows = Vec::new();
        let mut order: Vec<usize> = (0..lives.len()).collect();
        order.sort_by_key(|&seq| lives[seq].levels == 0);
        for seq in order {
            let live = &mut lives[seq];
            let missing = &live.ask.context[live.state.cache.len()..];
            let room = self.sizes.context.checked_sub(live.ask.context.len());
            let run = match room {
                Some(_) if missing.iter().all(|&token| token < vocab) => missing.len().min(left),
                _ => 0,
            };
            let levels = room.filter(|_| run == missing.len()).map_or(0, |room| room + 1);
            live.levels = live.levels.min(levels);
            let nodes = if live.levels > 0 { self.sizes.nodes } else { 0 };
            // Without pages the request goes on without drafts.
            if self.decoder.reserve(&mut live.state.cache, run + nodes).is_err() {
                live.levels = 0;
                continue;
            }
            left -= run;
            for (i, &token) in missing[..run].iter().enumerate() {
                let logits = live.levels > 0 && i + 1 == run;
                let parent = (i > 0).then(|| rows.len() - 1);
                live.tail.push(rows.len());
                rows.push(Row { token, seq, parent, logits, hidden: false });
            }
            live.state.known = run;
            if live.levels > 0 {
                live.places.push((Place { node: None, survival: 1.0 }, rows.len() - 1));
            }
        }
        rows
    }

    /// The next level of one tree, and the rows that it needs for the level after. `first` is the
    /// number of rows that have run.
    fn grow(
        &mut self,
        seq: usize,
        live: &mut Live<'_, '_>,
        first: usize,
        rows: &mut Vec<Row>,
    ) -> Result<(), EngineError> {
        let nodes = live.ask.budget.nodes.min(self.sizes.nodes);
        let room = nodes.saturating_sub(live.ask.tree.len()).min(self.sizes.branching);
        if live.levels == 0 || room == 0 {
            live.levels = 0;
            return Ok(());
        }
        let (places, at): (Vec<Place>, Vec<usize>) = live.places.drain(..).unzip();
        let width = self.sizes.branching;
        let rows_of: Vec<Cow<'_, [f32]>> =
            at.iter().map(|&row| logits(&self.decoder, self.sizes, row)).collect();
        let draws = self.sizes.draws;
        let grown = grow(live.ask, &places, &rows_of, room, width, draws, &mut self.scratch)?;
        live.levels -= 1;
        if live.levels == 0 || live.ask.tree.len() >= nodes {
            return Ok(());
        }
        live.state.rows.resize(live.ask.tree.len(), None);
        for place in grown {
            let Some(node) = place.node else { continue };
            let parent = match live.ask.tree.parent(node) {
                Some(parent) => live.state.rows[parent].map(|row| live.tail[row]),
                None => live.tail.get(live.state.known - 1).copied(),
            };
            live.state.rows[node] = Some(live.tail.len());
            live.tail.push(first + rows.len());
            live.places.push((place, rows.len()));
            let token = live.ask.tree.token(node);
            rows.push(Row { token, seq, parent, logits: true, hidden: false });
        }
        Ok(())
    }

    /// Gives back what a failed step left behind.
    fn forget_tails(&mut self) {
        for state in self.states.values_mut() {
            state.known = 0;
            state.rows.clear();
            // Nothing moves, so nothing can fail.
            let _ = self.decoder.commit(&mut state.cache, &[]);
        }
    }
}

impl Drafter for ModelDrafter {
    fn propose(&mut self, asks: &mut [Ask<'_>]) -> Result<(), DraftError> {
        let mut lives: Vec<Live<'_, '_>> = asks
            .iter_mut()
            .map(|ask| {
                let mut state = self.states.remove(&ask.id).unwrap_or_default();
                state.known = 0;
                state.rows.clear();
                // The draft reads ahead as the target does, and shares what it knows likewise.
                self.decoder.publish(&mut state.cache, ask.context);
                self.decoder.reuse(&mut state.cache, ask.context);
                let levels = if ask.budget.nodes == 0 { 0 } else { ask.budget.depth };
                Live { ask, state, tail: Vec::new(), places: Vec::new(), levels }
            })
            .collect();
        let outcome = self.run(&mut lives);
        for live in lives {
            self.states.insert(live.ask.id, live.state);
        }
        if outcome.is_err() {
            self.forget_tails();
        }
        outcome.map_err(|error| DraftError(Box::new(error)))
    }

    fn commit(&mut self, id: u64, path: &[usize]) -> Result<(), DraftError> {
        let Some(state) = self.states.get_mut(&id) else { return Ok(()) };
        let run = path.iter().map_while(|&node| state.rows.get(node).copied().flatten());
        let keep: Vec<usize> = (0..state.known).chain(run).collect();
        state.known = 0;
        state.rows.clear();
        self.decoder.commit(&mut state.cache, &keep).map_err(|error| DraftError(Box::new(error)))
    }

    fn release(&mut self, id: u64) {
        if let Some(mut state) = self.states.remove(&id) {
            self.decoder.release(&mut state.cache);
        }
    }
}

/// Logits of a row of the last pass over the target's vocabulary: tokens that the draft does not
/// know do not exist.
fn logits(decoder: &Decoder, sizes: ModelDrafterSizes, row: usize) -> Cow<'_, [f32]> {
    let known = &decoder.logits(row).unwrap_or_default()[..sizes.vocab];
    if sizes.vocab == sizes.target_vocab {
        return Cow::Borrowed(known);
    }
    let mut padded = known.to_vec();
    padded.resize(sizes.target_vocab, f32::NEG_INFINITY);
    Cow::Owned(padded)
}
