//! [`Scripted`]: a drafter that knows what comes next, and proposes rights and wrongs at random, so
//! that tests of the engine see every pattern of acceptance and rejection.

use std::collections::HashMap;

use specdec_core::{Ask, Budget, DraftError, DraftTree, Drafter, Origin, TokenId};

use crate::toy::Words;

/// Proposes from the true text: at each step some number of right tokens (0 to the full depth, all
/// alike), then wrong ones; on trees with wrong siblings before and after them, which may have
/// children of their own. Sometimes it proposes less than it may, and sometimes nothing.
#[derive(Debug, Clone)]
pub struct Scripted {
    truth: Vec<TokenId>,
    vocab: usize,
    branching: usize,
    seed: u64,
}

impl Scripted {
    /// Proposals as a function of the seed and the length of the context. `truth` is prompt and
    /// output of the plain run, `vocab` the number of tokens (at least 2), `branching` the number
    /// of siblings (1: chains).
    pub fn new(truth: Vec<TokenId>, vocab: usize, branching: usize, seed: u64) -> Self {
        Self { truth, vocab, branching, seed }
    }

    /// Adds the siblings of one level; the one to go on from.
    fn level(&self, here: &Level, tree: &mut DraftTree, words: &mut Words) -> Option<usize> {
        let siblings = 1 + words.below(self.branching);
        let place = words.below(siblings);
        let mut next = None;
        for sibling in 0..siblings {
            if sibling == place {
                let token = here.right.unwrap_or_else(|| self.wrong(here.truth, words));
                next = here.add(tree, here.parent, token);
                continue;
            }
            let token = self.wrong(here.truth, words);
            let node = here.add(tree, here.parent, token);
            if node.is_some() && here.deeper && words.once_in(3) {
                // Often the token that is right one level up: a mask that leaks would show.
                here.add(tree, node, here.truth.unwrap_or(token));
            }
        }
        next
    }

    /// A tree that continues `context`.
    pub fn propose(&self, context: &[TokenId], budget: Budget) -> DraftTree {
        let mut words = Words::new(self.seed, 0, &[context.len() as TokenId]);
        let mut tree = DraftTree::new();
        let depth = words.below(budget.depth + 1);
        let rights = words.below(depth + 1);
        let mut parent = None;
        for i in 0..depth {
            let truth = self.truth.get(context.len() + i).copied();
            let right = truth.filter(|_| i < rights);
            let deeper = i + 1 < budget.depth;
            let here = Level { parent, truth, right, deeper, nodes: budget.nodes };
            parent = self.level(&here, &mut tree, &mut words);
            if parent.is_none() {
                break;
            }
        }
        tree
    }

    /// A token that is not `truth`.
    fn wrong(&self, truth: Option<TokenId>, words: &mut Words) -> TokenId {
        let token = words.below(self.vocab) as TokenId;
        if Some(token) == truth { (token + 1) % self.vocab as TokenId } else { token }
    }
}

/// Where a level of siblings goes.
struct Level {
    parent: Option<usize>,
    /// What the target will emit here.
    truth: Option<TokenId>,
    /// The same, where the script wants it to be proposed.
    right: Option<TokenId>,
    /// Whether the budget allows children below this level.
    deeper: bool,
    nodes: usize,
}

impl Level {
    /// The new node; none if the budget is used up or a sibling holds the token.
    fn add(&self, tree: &mut DraftTree, parent: Option<usize>, token: TokenId) -> Option<usize> {
        let room = tree.len() < self.nodes;
        room.then(|| tree.push(parent, token, Origin::Deterministic).ok()).flatten()
    }
}

/// The scripts of several requests, by number; requests without one get no drafts.
#[derive(Debug, Clone, Default)]
pub struct Scripts(pub HashMap<u64, Scripted>);

impl Drafter for Scripts {
    fn propose(&mut self, asks: &mut [Ask<'_>]) -> Result<(), DraftError> {
        for ask in asks {
            if let Some(script) = self.0.get(&ask.id) {
                ask.tree = script.propose(ask.context, ask.budget);
            }
        }
        Ok(())
    }

    fn commit(&mut self, _id: u64, _path: &[usize]) -> Result<(), DraftError> {
        Ok(())
    }

    /// A request that was set aside comes back to its script.
    fn release(&mut self, _id: u64) {}
}

#[cfg(test)]
mod tests {
    use super::{Budget, Scripted};

    /// How many of the tree's tokens follow the truth.
    fn accepted(truth: &[u32], at: usize, drafter: &Scripted, budget: Budget) -> (usize, usize) {
        let tree = drafter.propose(&truth[..at], budget);
        assert!(tree.len() <= budget.nodes && tree.max_depth() <= budget.depth);
        let mut node = None;
        let mut accepted = 0;
        while let Some(child) =
            truth.get(at + accepted).and_then(|&token| tree.child_with(node, token))
        {
            node = Some(child);
            accepted += 1;
        }
        (accepted, tree.len())
    }

    #[test]
    fn every_number_of_accepted_tokens_occurs() {
        let truth: Vec<u32> = (0..400).map(|i| i * i % 50).collect();
        for branching in [1, 3] {
            let drafter = Scripted::new(truth.clone(), 50, branching, 7);
            let budget = Budget { nodes: 16, depth: 4 };
            let mut seen = [0; 5];
            let mut empty = 0;
            for at in 1..390 {
                let (accepted, nodes) = accepted(&truth, at, &drafter, budget);
                seen[accepted] += 1;
                empty += usize::from(nodes == 0);
            }
            assert!(seen.iter().all(|&n| n > 5) && empty > 5, "{seen:?}, {empty} empty");
        }
    }

    #[test]
    fn small_budgets_hold() {
        let truth: Vec<u32> = (0..50).collect();
        for nodes in 0..4 {
            for depth in 0..4 {
                let drafter = Scripted::new(truth.clone(), 50, 3, 1);
                for at in 0..50 {
                    accepted(&truth, at, &drafter, Budget { nodes, depth });
                }
            }
        }
    }
}
