//! Where the engine's time goes: by phase, and by the number of rows of a pass.

use crate::sequence::Sequence;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Sums over all steps since the engine was loaded or the metrics were reset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineMetrics {
    /// Steps taken.
    pub steps: u64,
    /// Time spent proposing trees.
    pub draft: Duration,
    /// Steps that went on without a drafter because it failed.
    pub draft_failures: u64,
    /// How often a sequence gave its place in the cache to older ones.
    pub preemptions: u64,
    /// Tokens of prompts that have begun to run.
    pub prefix_cache_queries: u64,
    /// Those of them that needed no pass.
    pub prefix_cache_hits: u64,
    /// Time spent in forward passes.
    pub forward: Duration,
    /// Time spent on laws, verification, text.
    pub verify: Duration,
    /// Time spent on moving cache entries.
    pub commit: Duration,
    /// By the number of rows of a pass: how many passes, and their forward time. The measured cost
    /// of width v(w).
    pub forward_by_rows: BTreeMap<usize, (u64, Duration)>,
}

impl EngineMetrics {
    /// A sequence joins the running ones for the first time.
    pub(crate) fn count_prompt(&mut self, seq: &Sequence) {
        if seq.num_preemptions == 0 {
            self.prefix_cache_queries += seq.prompt_len() as u64;
        }
    }

    /// `found` tokens of a sequence needed no pass. What a sequence read before it gave way is no
    /// gain when it comes back.
    pub(crate) fn count_cached(&mut self, seq: &mut Sequence, found: usize) {
        if seq.num_preemptions == 0 {
            seq.num_cached_tokens += found;
            self.prefix_cache_hits += found as u64;
        }
    }

    /// Adds the sums over other steps.
    pub(crate) fn add(&mut self, other: Self) {
        // Taken apart whole, so that no field can be forgotten.
        let Self {
            steps,
            draft,
            draft_failures,
            preemptions,
            prefix_cache_queries,
            prefix_cache_hits,
            forward,
            verify,
            commit,
            forward_by_rows,
        } = other;
        self.steps += steps;
        self.draft += draft;
        self.draft_failures += draft_failures;
        self.preemptions += preemptions;
        self.prefix_cache_queries += prefix_cache_queries;
        self.prefix_cache_hits += prefix_cache_hits;
        self.forward += forward;
        self.verify += verify;
        self.commit += commit;
        for (rows, (passes, time)) in forward_by_rows {
            let sum = self.forward_by_rows.entry(rows).or_default();
            sum.0 += passes;
            sum.1 += time;
        }
    }

    /// Adds a step of `rows` rows; `at` are the borders of its four phases.
    pub(crate) fn record(&mut self, rows: usize, at: [Instant; 5]) {
        self.steps += 1;
        self.draft += at[1] - at[0];
        self.forward += at[2] - at[1];
        self.verify += at[3] - at[2];
        self.commit += at[4] - at[3];
        let cost = self.forward_by_rows.entry(rows).or_default();
        cost.0 += 1;
        cost.1 += at[2] - at[1];
    }
}
