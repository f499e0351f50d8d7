//! [`SpecStats`]: what speculation did for one request, in vLLM's shape.

use crate::verify::Walk;

/// Why a step emitted no more tokens than it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepEnd {
    /// No child of the last accepted node was accepted.
    Rejected,
    /// The drafter had nothing to propose.
    NoDraft,
    /// A whole path of the tree was accepted.
    AllAccepted,
    /// There was no room to draft: `max_tokens`, the context, or the plan said so.
    Budget,
    /// The step read text that was there before, as a prompt, and drafts follow behind it.
    Prompt,
    /// The request ended within the step.
    Finished,
}

impl From<Walk> for StepEnd {
    fn from(walk: Walk) -> Self {
        match walk {
            Walk::Rejected => Self::Rejected,
            Walk::NoDraft => Self::NoDraft,
            Walk::AllAccepted => Self::AllAccepted,
        }
    }
}

/// One step of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Nodes verified.
    pub drafted: usize,
    /// Longest path of the tree.
    pub depth: usize,
    /// Drafted tokens that were accepted and emitted.
    pub accepted: usize,
    /// Why no more.
    pub end: StepEnd,
}

/// Counts over the steps of a request. A step that drafted nothing counts as plain only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpecStats {
    /// Steps with a draft.
    pub num_spec_steps: u64,
    /// Steps without.
    pub num_plain_steps: u64,
    /// Nodes verified; on a tree more than can be accepted.
    pub num_draft_tokens: u64,
    /// Drafted tokens accepted; the token drawn after them is not counted.
    pub num_accepted_draft_tokens: u64,
    /// `[i]`: steps with a draft in which i drafted tokens were accepted.
    pub acceptance_histogram: Vec<u64>,
    /// `[d][i]`: of those, the steps whose longest path had d tokens.
    pub acceptance_histogram_by_draft_length: Vec<Vec<u64>>,
    /// `[i]`: steps whose tree reached depth i + 1.
    pub drafted_per_position: Vec<u64>,
    /// `[i]`: steps in which the token at depth i + 1 was accepted.
    pub accepted_per_position: Vec<u64>,
    /// Longest path of all trees.
    pub max_tree_depth: usize,
    /// Ends of all steps, in the order of [`StepEnd`].
    pub ends: [u64; 6],
    /// Every step in order, if asked for.
    pub steps: Option<Vec<Step>>,
}

impl SpecStats {
    /// Nothing counted yet; `num_spec_tokens` = k sets the histogram's length, k + 1. With
    /// `detailed`, every step is kept.
    pub fn new(num_spec_tokens: usize, detailed: bool) -> Self {
        Self {
            acceptance_histogram: vec![0; num_spec_tokens + 1],
            drafted_per_position: vec![0; num_spec_tokens],
            accepted_per_position: vec![0; num_spec_tokens],
            steps: detailed.then(Vec::new),
            ..Self::default()
        }
    }

    /// Counts one step.
    pub fn record(&mut self, step: Step) {
        self.ends[step.end as usize] += 1;
        if let Some(steps) = &mut self.steps {
            steps.push(step);
        }
        if step.drafted == 0 {
            self.num_plain_steps += 1;
            return;
        }
        self.num_spec_steps += 1;
        self.num_draft_tokens += step.drafted as u64;
        self.num_accepted_draft_tokens += step.accepted as u64;
        self.max_tree_depth = self.max_tree_depth.max(step.depth);
        increment(&mut self.acceptance_histogram, step.accepted);
        let lengths = &mut self.acceptance_histogram_by_draft_length;
        lengths.resize_with(lengths.len().max(step.depth + 1), Vec::new);
        increment(&mut lengths[step.depth], step.accepted);
        (0..step.depth).for_each(|i| increment(&mut self.drafted_per_position, i));
        (0..step.accepted).for_each(|i| increment(&mut self.accepted_per_position, i));
    }

    /// Adds the counts (and steps) of another request.
    pub fn merge(&mut self, other: &Self) {
        self.num_spec_steps += other.num_spec_steps;
        self.num_plain_steps += other.num_plain_steps;
        self.num_draft_tokens += other.num_draft_tokens;
        self.num_accepted_draft_tokens += other.num_accepted_draft_tokens;
        self.max_tree_depth = self.max_tree_depth.max(other.max_tree_depth);
        add(&mut self.acceptance_histogram, &other.acceptance_histogram);
        add(&mut self.drafted_per_position, &other.drafted_per_position);
        add(&mut self.accepted_per_position, &other.accepted_per_position);
        self.ends.iter_mut().zip(other.ends).for_each(|(count, more)| *count += more);
        let lengths = &mut self.acceptance_histogram_by_draft_length;
        let theirs = &other.acceptance_histogram_by_draft_length;
        lengths.resize_with(lengths.len().max(theirs.len()), Vec::new);
        lengths.iter_mut().zip(theirs).for_each(|(ours, theirs)| add(ours, theirs));
        if let (Some(steps), Some(more)) = (&mut self.steps, &other.steps) {
            steps.extend_from_slice(more);
        }
    }

    /// Tokens emitted per step with a draft: 1 + accepted / steps (1 without any step).
    pub fn mean_acceptance_length(&self) -> f64 {
        1.0 + ratio(self.num_accepted_draft_tokens, self.num_spec_steps)
    }

    /// Accepted / drafted tokens (0 without any).
    pub fn draft_acceptance_rate(&self) -> f64 {
        ratio(self.num_accepted_draft_tokens, self.num_draft_tokens)
    }

    /// How many steps ended this way.
    pub fn ended(&self, end: StepEnd) -> u64 {
        self.ends[end as usize]
    }
}

fn increment(counts: &mut Vec<u64>, i: usize) {
    if counts.len() <= i {
        counts.resize(i + 1, 0);
    }
    counts[i] += 1;
}

fn add(counts: &mut Vec<u64>, more: &[u64]) {
    counts.resize(counts.len().max(more.len()), 0);
    counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
