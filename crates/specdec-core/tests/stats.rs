//! Statistics: the counts of a short history, by hand.

use specdec_core::{SpecStats, Step, StepEnd, Walk};

fn step(drafted: usize, depth: usize, accepted: usize, end: StepEnd) -> Step {
    Step { drafted, depth, accepted, end }
}

fn record(stats: &mut SpecStats, steps: &[Step]) {
    for step in steps {
        stats.record(*step);
    }
}

#[test]
fn a_short_history() {
    let history = [
        step(3, 3, 3, StepEnd::from(Walk::AllAccepted)),
        step(3, 3, 0, StepEnd::from(Walk::Rejected)),
        step(0, 0, 0, StepEnd::from(Walk::NoDraft)),
        step(5, 2, 1, StepEnd::Rejected),
        step(0, 0, 0, StepEnd::Budget),
        step(2, 2, 1, StepEnd::Finished),
    ];
    let mut stats = SpecStats::new(3, true);
    record(&mut stats, &history);
    assert_eq!((stats.num_spec_steps, stats.num_plain_steps), (4, 2));
    assert_eq!((stats.num_draft_tokens, stats.num_accepted_draft_tokens), (13, 5));
    assert_eq!(stats.acceptance_histogram, [1, 2, 0, 1]);
    assert_eq!(
        stats.acceptance_histogram_by_draft_length,
        [vec![], vec![], vec![0, 2], vec![1, 0, 0, 1]]
    );
    assert_eq!(stats.drafted_per_position, [4, 4, 2]);
    assert_eq!(stats.accepted_per_position, [3, 1, 1]);
    assert_eq!(stats.max_tree_depth, 3);
    assert!((stats.mean_acceptance_length() - 2.25).abs() < 1e-15);
    assert!((stats.draft_acceptance_rate() - 5.0 / 13.0).abs() < 1e-15);
    let ends = [
        (StepEnd::Rejected, 2),
        (StepEnd::NoDraft, 1),
        (StepEnd::AllAccepted, 1),
        (StepEnd::Budget, 1),
        (StepEnd::Finished, 1),
    ];
    assert!(ends.iter().all(|&(end, count)| stats.ended(end) == count));
    assert_eq!(stats.steps.as_deref(), Some(&history[..]));
}

#[test]
fn nothing_drafted_is_no_division_by_zero() {
    let stats = SpecStats::new(4, false);
    assert_eq!(stats.acceptance_histogram.len(), 5);
    assert!((stats.mean_acceptance_length() - 1.0).abs() < f64::EPSILON);
    assert!(stats.draft_acceptance_rate().abs() < f64::EPSILON);
}

#[test]
fn merged_counts_are_those_of_one_history() {
    let history: Vec<Step> =
        (0..20).map(|i| step(i % 5, i % 5, (i * 7 % 3).min(i % 5), StepEnd::Rejected)).collect();
    let mut whole = SpecStats::new(2, true);
    record(&mut whole, &history);
    let (mut left, mut right) = (SpecStats::new(2, true), SpecStats::new(2, true));
    record(&mut left, &history[..3]);
    record(&mut right, &history[3..]);
    left.merge(&right);
    assert_eq!(left, whole);
}
