//! ONE step of every running sequence:
//!
//! ```text
//! context -> draft -> tree -> forward -> verify -> commit -> stream
//! ```
//!
//! Plain decoding is this step with an empty tree, and prefill is this step with more missing tokens
//! than fit. There is no second path, so greedy text cannot depend on the drafter: the verifier reads
//! logits that do not depend on the other rows of the pass.

use crate::error::EngineError;
use crate::load::tokenizer::Tokenizer;
use crate::metrics::EngineMetrics;
use crate::model::{decoder::Decoder, rows::Row};
use crate::sequence::{Scratch, Sequence};
use specdec_core::verify::PathLaws;
use specdec_core::{Ask, Budget, DraftError, DraftTree, Drafter, LawError, Outcome, Step, StepEnd};
use std::time::Instant;

/// One sequence's share of a pass.
struct Share {
    /// Its first row in the batch.
    first: usize,
    /// Known tokens that enter the cache.
    missing: usize,
    /// Drafted nodes behind them; node `i` is row `first + missing + i`.
    tree: DraftTree,
    /// Whether the last known token is in the pass, so that a token can be drawn.
    draws: bool,
    /// Whether all known tokens' logits are wanted.
    aloud: bool,
    /// What may be drafted.
    budget: Budget,
}

impl Share {
    /// Whether there was room to draft.
    fn room(&self) -> bool {
        self.budget.depth > 0
    }

    /// The nodes behind the last known token that the answer took.
    fn accepted(&self, keep: &[usize]) -> Vec<usize> {
        keep.iter().skip(self.missing).map(|row| row - self.missing).collect()
    }

    fn end(&self, outcome: &Outcome) -> StepEnd {
        match self.missing {
            1 if self.room() => outcome.walk.into(),
            1 => StepEnd::Budget,
            _ => StepEnd::Prompt,
        }
    }
}

/// What became of one sequence in a step.
pub enum Progress {
    /// It goes on (perhaps still in its prompt).
    Running,
    /// It ended with this step.
    Finished,
    /// It cannot go on; the others can.
    Failed(EngineError),
}

/// Steps all `sequences` once: one forward pass for all of them.
///
/// # Errors
/// Faults of the device, after which no sequence can go on.
pub fn step(
    decoder: &mut Decoder,
    mut drafter: Option<&mut (dyn Drafter + 'static)>,
    tokenizer: &Tokenizer,
    sequences: &mut [Sequence],
    scratch: &mut Scratch,
    metrics: &mut EngineMetrics,
) -> Result<Vec<Progress>, EngineError> {
    let begin = Instant::now();
    let mut shares = plan(decoder.limits(), sequences);
    if let Some(drafter) = drafter.as_deref_mut()
        && propose(drafter, sequences, &mut shares).is_err()
    {
        metrics.draft_failures += 1;
    }
    let rows = lay_out(sequences, &mut shares);
    sequences.iter_mut().for_each(Sequence::mark_started);
    let drafted = Instant::now();
    {
        let mut caches: Vec<_> = sequences.iter_mut().map(|seq| &mut seq.cache).collect();
        decoder.forward(&mut caches, &rows)?;
    }
    let forwarded = Instant::now();
    let mut progress = Vec::with_capacity(sequences.len());
    let mut paths = Vec::with_capacity(sequences.len());
    for (seq, share) in sequences.iter_mut().zip(&shares) {
        let (state, path) = advance(decoder, tokenizer, seq, share, scratch);
        progress.push(state);
        paths.push(path);
    }
    let verified = Instant::now();
    for ((seq, share), keep) in sequences.iter_mut().zip(&shares).zip(&paths) {
        decoder.commit(&mut seq.cache, keep)?;
        decoder.publish(&mut seq.cache, &seq.tokens);
        if let Some(drafter) = drafter.as_deref_mut()
            && seq.budget.is_some()
            && drafter.commit(seq.id, &share.accepted(keep)).is_err()
        {
            metrics.draft_failures += 1;
        }
    }
    metrics.record(rows.len(), [begin, drafted, forwarded, verified, Instant::now()]);
    Ok(progress)
}

/// Who gets which rows: every decoding sequence its own first, prompts share what is left of the
/// rows, and of the rows with logits where they report log-probabilities.
fn plan((max_rows, max_logits): (usize, usize), sequences: &[Sequence]) -> Vec<Share> {
    let decodes = |seq: &&Sequence| seq.missing().len() == 1;
    let decoding: usize =
        sequences.iter().filter(decodes).map(|seq| 1 + seq.draft_budget().nodes).sum();
    let prompts = sequences.len() - sequences.iter().filter(decodes).count();
    let mut left = max_rows.saturating_sub(decoding);
    let mut aloud = max_logits.saturating_sub(decoding + prompts);
    let share = |seq: &Sequence| {
        let known = seq.missing().len();
        let mut missing = if known == 1 { 1 } else { known.min(left) };
        let aloud_now = known > 1 && seq.reads_aloud();
        if aloud_now {
            missing = missing.min(aloud + 1);
            aloud -= missing.saturating_sub(1);
        }
        let draws = missing == known;
        if known > 1 {
            left -= missing;
        }
        let budget = if known == 1 { seq.draft_budget() } else { Budget { nodes: 0, depth: 0 } };
        Share { first: 0, missing, tree: DraftTree::new(), draws, aloud: aloud_now, budget }
    };
    sequences.iter().map(share).collect()
}

/// Draft and tree: one call for all sequences that speculate. Those whose prompt is being read are
/// asked too, without a budget, so that a draft model reads along.
fn propose(
    drafter: &mut dyn Drafter,
    sequences: &[Sequence],
    shares: &mut [Share],
) -> Result<(), DraftError> {
    let speculating = |&at: &usize| sequences[at].budget.is_some();
    let who: Vec<usize> = (0..sequences.len()).filter(speculating).collect();
    let ask = |&at: &usize| {
        let (seq, share) = (&sequences[at], &shares[at]);
        let context = &seq.tokens[..seq.cache.len() + share.missing];
        Ask {
            id: seq.id,
            context,
            budget: share.budget,
            prediction: &seq.params.prediction,
            rule: seq.rule(),
            tree: DraftTree::new(),
        }
    };
    let mut asks: Vec<Ask<'_>> = who.iter().map(ask).collect();
    let outcome = drafter.propose(&mut asks);
    for (at, ask) in who.into_iter().zip(asks) {
        shares[at].tree = ask.tree;
    }
    outcome
}

/// The rows of the pass: known tokens, and the nodes behind them.
fn lay_out(sequences: &[Sequence], shares: &mut [Share]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, (seq, share)) in sequences.iter().zip(shares).enumerate() {
        share.first = rows.len();
        push_rows(&mut rows, index, &seq.missing()[..share.missing], share);
    }
    rows
}

fn push_rows(rows: &mut Vec<Row>, seq: usize, missing: &[u32], share: &Share) {
    for (i, &token) in missing.iter().enumerate() {
        let parent = i.checked_sub(1).map(|before| share.first + before);
        let logits = share.aloud || (share.draws && i + 1 == missing.len());
        rows.push(Row { token, seq, parent, logits, hidden: false });
    }
    let nodes = share.first + missing.len();
    for node in 0..share.tree.len() {
        let parent = Some(share.tree.parent(node).map_or(nodes - 1, |parent| nodes + parent));
        rows.push(Row { token: share.tree.token(node), seq, parent, logits: true, hidden: false });
    }
}

/// Verify and stream one sequence; returns the tail rows of the pass that its cache keeps.
fn advance(
    decoder: &Decoder,
    tokenizer: &Tokenizer,
    seq: &mut Sequence,
    share: &Share,
    scratch: &mut Scratch,
) -> (Progress, Vec<usize>) {
    let mut keep: Vec<usize> = (0..share.missing).collect();
    if share.aloud
        && let Err(error) = read_aloud(decoder, seq, share, scratch)
    {
        return (Progress::Failed(error), keep);
    }
    if !share.draws {
        return (Progress::Running, keep);
    }
    let root = share.first + share.missing - 1;
    let outcome = check(decoder, seq, share, root, scratch);
    let goes_on = outcome.map_err(EngineError::from).and_then(|outcome| {
        emit(decoder, tokenizer, seq, share, root, &outcome, &mut keep, scratch)
    });
    let progress = match goes_on {
        Ok(true) => Progress::Running,
        Ok(false) => Progress::Finished,
        Err(error) => Progress::Failed(error),
    };
    (progress, keep)
}

/// Reports the log-probabilities of the prompt's tokens in this pass.
fn read_aloud(
    decoder: &Decoder,
    seq: &mut Sequence,
    share: &Share,
    scratch: &mut Scratch,
) -> Result<(), EngineError> {
    let start = seq.cache.len();
    (0..share.missing)
        .try_for_each(|i| seq.hear(start + i, logits(decoder, share.first + i), scratch))
}

fn check(
    decoder: &Decoder,
    seq: &Sequence,
    share: &Share,
    root: usize,
    scratch: &mut Scratch,
) -> Result<Outcome, LawError> {
    let Scratch { ops, laws, edited } = scratch;
    let mut path = Vec::new();
    let mut laws = PathLaws::new(&share.tree, laws, |node, law| {
        let row = node.map_or(root, |node| root + 1 + node);
        share.tree.tokens_to(node, &mut path);
        let prefix = seq.history.then(&path);
        seq.processors.law(logits(decoder, row), prefix, ops, edited, law)
    });
    seq.method.verify(&share.tree, &mut laws, seq.tokens.len(), seq.key)
}

/// Commits the outcome token by token, the drawn one last, until the answer ends. Returns whether it
/// goes on.
#[expect(clippy::too_many_arguments, reason = "the state of one step, read by this function alone")]
fn emit(
    decoder: &Decoder,
    tokenizer: &Tokenizer,
    seq: &mut Sequence,
    share: &Share,
    root: usize,
    outcome: &Outcome,
    keep: &mut Vec<usize>,
    scratch: &mut Scratch,
) -> Result<bool, EngineError> {
    let mut row = root;
    let mut accepted = 0;
    let mut goes_on = true;
    for &node in &outcome.path {
        let token = share.tree.token(node);
        goes_on = seq.emit(token, true, logits(decoder, row), tokenizer, scratch)?;
        accepted += 1;
        keep.push(share.missing + node);
        row = root + 1 + node;
        if !goes_on {
            break;
        }
    }
    let end = if goes_on { share.end(outcome) } else { StepEnd::Finished };
    if goes_on {
        goes_on = seq.emit(outcome.next, false, logits(decoder, row), tokenizer, scratch)?;
    }
    seq.record(Step { drafted: share.tree.len(), depth: share.tree.max_depth(), accepted, end });
    Ok(goes_on)
}

/// Every row that a verifier or an answer reads asked for its logits in [`push_rows`].
fn logits(decoder: &Decoder, row: usize) -> &[f32] {
    decoder.logits(row).unwrap_or_default()
}
