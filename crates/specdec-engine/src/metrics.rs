//! Where the engine's time goes: by phase, and by the number of rows of a pass.

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
