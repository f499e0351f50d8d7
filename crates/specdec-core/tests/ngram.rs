//! Prompt lookup: the written rule, by example and as properties of every proposal.

use proptest::prelude::*;
use specdec_core::rng::Key;
use specdec_core::{Ask, Budget, DraftTree, Drafter, History, Method, Ngram, Processors};
use specdec_core::{Rule, Sampling, TokenId};

fn propose(
    context: &[TokenId],
    (min, max, branching): (usize, usize, usize),
    nodes: usize,
    depth: usize,
) -> DraftTree {
    let mut drafter = Ngram::new(min, max, branching).expect("in range");
    let key = Key { seed: 0, sample: 0 };
    let (processors, history) =
        (Processors::new(&Sampling::greedy(), 1).expect("in range"), History::default());
    let rule = Rule { processors: &processors, history: &history, method: Method::Greedy, key };
    let budget = Budget { nodes, depth };
    let mut asks = [Ask { id: 0, context, budget, prediction: &[], rule, tree: DraftTree::new() }];
    drafter.propose(&mut asks).expect("a rule does not fail");
    let [ask] = asks;
    ask.tree
}

/// Tokens of all root-to-leaf paths, in node order.
fn paths(tree: &DraftTree) -> Vec<Vec<TokenId>> {
    let leaves = (0..tree.len()).filter(|&node| tree.children(Some(node)).is_empty());
    leaves
        .map(|leaf| tree.path_to(leaf).into_iter().map(|node| tree.token(node)).collect())
        .collect()
}

#[test]
fn the_longest_match_wins_then_the_most_recent() {
    // [1 2] was followed by 7 first, by 8 last; [5 1 2] only by 7.
    let context = [5, 1, 2, 7, 9, 1, 2, 8, 9, 5, 1, 2];
    assert_eq!(paths(&propose(&context, (1, 3, 1), 2, 2)), [[7, 9]]);
    assert_eq!(paths(&propose(&context, (1, 2, 1), 2, 2)), [[8, 9]]);
    assert_eq!(paths(&propose(&context, (1, 3, 2), 4, 2)), [[7, 9], [8, 9]]);
}

#[test]
fn matches_shorter_than_the_minimum_do_not_count() {
    assert!(propose(&[1, 2, 3, 2], (2, 4, 1), 4, 4).is_empty());
    assert_eq!(paths(&propose(&[1, 2, 3, 2], (1, 4, 1), 4, 4)), [[3, 2, 3, 2]]);
}

#[test]
fn periodic_text_goes_on_as_long_as_the_budget() {
    assert_eq!(paths(&propose(&[4; 6], (1, 3, 1), 8, 8)), [[4; 8]]);
    assert_eq!(paths(&propose(&[1, 2, 3, 1, 2], (1, 3, 1), 7, 7)), [[3, 1, 2, 3, 1, 2, 3]]);
    // All occurrences continue alike: there is one path, however many are asked for.
    assert_eq!(paths(&propose(&[1, 2, 1, 2, 1, 2], (1, 3, 4), 9, 3)), [[1, 2, 1]]);
}

#[test]
fn a_shared_beginning_is_one_path() {
    let context = [1, 7, 8, 0, 1, 7, 9, 0, 1];
    let tree = propose(&context, (1, 2, 2), 8, 2);
    assert_eq!(paths(&tree), [[7, 9], [7, 8]]);
    assert_eq!(tree.len(), 3);
}

#[test]
fn short_contexts_and_empty_budgets_propose_nothing() {
    for context in [&[][..], &[1], &[1, 2]] {
        assert!(propose(context, (1, 3, 2), 4, 4).is_empty(), "{context:?}");
    }
    assert_eq!(paths(&propose(&[1, 1], (1, 3, 2), 4, 4)), [[1; 4]]);
    assert!(propose(&[1, 1, 1], (1, 3, 2), 0, 4).is_empty());
    assert!(propose(&[1, 1, 1], (1, 3, 2), 4, 0).is_empty());
    assert!(propose(&[1, 2, 3, 4], (1, 3, 2), 4, 4).is_empty());
}

#[test]
fn parameters_out_of_range_are_named() {
    let message =
        |min, max, branching| Ngram::new(min, max, branching).expect_err("refused").to_string();
    assert_eq!(message(0, 3, 1), "prompt_lookup_min is 0, expected at least 1");
    assert_eq!(message(4, 3, 1), "prompt_lookup_max is 3, expected at least prompt_lookup_min");
    assert_eq!(message(1, 3, 0), "branching_factor is 0, expected at least 1");
    assert!(Ngram::new(1, usize::MAX, usize::MAX).is_ok());
}

/// Continuations in the order of the rule, found by comparing everything with everything.
fn slowly(context: &[TokenId], min: usize, max: usize, depth: usize) -> Vec<Vec<TokenId>> {
    let mut found = Vec::new();
    for length in (min..=max.min(context.len())).rev() {
        let suffix = &context[context.len() - length..];
        for end in (length..context.len()).rev() {
            let longer = length < max
                && end > length
                && context[end - length - 1] == context[context.len() - length - 1];
            if context[end - length..end] == *suffix && !longer {
                let mut text = context.to_vec();
                (0..depth).for_each(|i| text.push(text[end + i]));
                found.push(text.split_off(context.len()));
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn proposals_follow_the_rule(
        context in prop::collection::vec(0..4_u32, 0..40),
        min in 1..4_usize,
        more in 0..4_usize,
        branching in 1..5_usize,
        nodes in 0..12_usize,
        depth in 0..6_usize,
    ) {
        let max = min + more;
        let tree = propose(&context, (min, max, branching), nodes, depth);
        prop_assert!(tree.len() <= nodes && tree.max_depth() <= depth);
        let allowed = slowly(&context, min, max, depth);
        let mut distinct: Vec<&Vec<TokenId>> = Vec::new();
        for continuation in &allowed {
            if !distinct.contains(&continuation) {
                distinct.push(continuation);
            }
        }
        // Every path is a beginning of one of the first `branching` different continuations.
        distinct.truncate(branching);
        let found = paths(&tree);
        for path in &found {
            prop_assert!(distinct.iter().any(|text| text.starts_with(path)), "{:?}", path);
        }
        for (node, parent) in (0..tree.len()).map(|node| (node, tree.parent(node))) {
            prop_assert_eq!(tree.child_with(parent, tree.token(node)), Some(node));
        }
        // Nothing is left out while there is room.
        if depth > 0 && tree.len() < nodes {
            for text in distinct {
                prop_assert!(found.contains(text), "{:?} is missing", text);
            }
        } else if depth > 0 && nodes > 0 {
            prop_assert_eq!(tree.is_empty(), distinct.is_empty());
        }
    }
}

#[test]
fn a_small_budget_is_shared_between_the_continuations() {
    // After [1, 2] came 3 4 5 6, and more recently 7 8 9 10.
    let context = [1, 2, 3, 4, 5, 6, 1, 2, 7, 8, 9, 10, 1, 2];
    let tree = propose(&context, (2, 2, 2), 5, 5);
    let path = |node: usize| -> Vec<u32> {
        tree.path_to(node).into_iter().map(|node| tree.token(node)).collect()
    };
    assert_eq!(tree.len(), 5);
    assert_eq!(path(4), [7, 8, 9]);
    assert_eq!(path(3), [3, 4]);
}

#[test]
fn a_prediction_counts_as_said_before() {
    let (processors, history) =
        (Processors::new(&Sampling::greedy(), 1).expect("in range"), History::default());
    let key = Key { seed: 0, sample: 0 };
    let rule = Rule { processors: &processors, history: &history, method: Method::Greedy, key };
    let budget = Budget { nodes: 3, depth: 3 };
    let (context, prediction) = ([1, 2, 9, 4, 5], [3, 4, 5, 6, 7, 8]);
    let tree = DraftTree::new();
    let mut asks = [Ask { id: 0, context: &context, budget, prediction: &prediction, rule, tree }];
    Ngram::new(2, 3, 1).expect("in range").propose(&mut asks).expect("a rule does not fail");
    assert_eq!(paths(&asks[0].tree), [[6, 7, 8]]);
}
