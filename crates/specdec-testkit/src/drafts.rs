//! Drafts of every shape for toy models, drawn by the rules that keep sampled trees exact.

use std::sync::Arc;

use specdec_core::chances::Draws;
use specdec_core::{DraftTree, Law, Number, TokenId};

use crate::toy::{Toy, Words, law};

/// What the children of a node are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Chosen without looking at the target.
    Deterministic,
    /// Drawn from the draft's law, without replacement.
    Drawn,
    /// Drawn ones, then deterministic ones that are not there yet.
    DrawnThenDeterministic,
    /// Deterministic ones, then ones drawn from the draft's law without them.
    DeterministicThenDrawn,
    /// Drawn from the draft's law, with replacement.
    Independent,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Deterministic,
        Self::Drawn,
        Self::DrawnThenDeterministic,
        Self::DeterministicThenDrawn,
        Self::Independent,
    ];
}

/// How a toy's drafts are made. How many tokens are proposed depends on the prefix and on what has
/// been drawn before; no token is dropped once it is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Drafts {
    /// What the children are.
    pub shape: Shape,
    /// Children of a node at most: 1 for chains.
    pub branching: usize,
    /// Tokens of a path at most.
    pub depth: usize,
    /// Nodes at most.
    pub nodes: usize,
    /// Whether a draft may be cut short.
    pub cut: bool,
}

const SHAPE: u32 = 3;

impl Drafts {
    /// A draft after `context`.
    pub fn propose<N: Number + From<u32>>(
        &self,
        toy: &Toy,
        context: &[TokenId],
        draws: &mut dyn Draws<N>,
    ) -> DraftTree<N> {
        let mut tree = DraftTree::new();
        let mut frontier = vec![None];
        while let Some(parent) = frontier.pop() {
            let depth = parent.map_or(0, |parent| tree.depth(parent));
            if depth < self.depth {
                self.grow(toy, context, parent, &mut tree, draws);
                frontier.extend(tree.children(parent).iter().rev().copied().map(Some));
            }
        }
        tree
    }

    /// Adds children to one node.
    fn grow<N: Number + From<u32>>(
        &self,
        toy: &Toy,
        context: &[TokenId],
        parent: Option<usize>,
        tree: &mut DraftTree<N>,
        draws: &mut dyn Draws<N>,
    ) {
        let prefix = prefix(context, tree, parent);
        let q: Arc<Law<N>> = Arc::new(law(&toy.draft(&prefix)));
        let mut seen = prefix.clone();
        for i in 0..self.branching {
            // What was drawn may decide whether to go on, never whether to keep it.
            let mut words = Words::new(toy.seed, SHAPE, &seen);
            if tree.len() >= self.nodes || (self.cut && words.once_in(4)) {
                return;
            }
            let drawn = match self.shape {
                Shape::Deterministic => false,
                Shape::Drawn | Shape::Independent => true,
                Shape::DrawnThenDeterministic => i == 0,
                Shape::DeterministicThenDrawn => i > 0,
            };
            if self.shape == Shape::Drawn && !self.cut {
                // Nothing to decide in between: all at once.
                let room = self.branching.min(self.nodes - tree.len());
                tree.draw(parent, &q, room, context.len(), draws);
                return;
            }
            let child = if self.shape == Shape::Independent {
                tree.draw_independent(parent, &q, 1, context.len(), draws).pop()
            } else if drawn {
                tree.draw(parent, &q, 1, context.len(), draws).pop()
            } else {
                let free = (0..toy.vocab as TokenId)
                    .filter(|&token| tree.child_with(parent, token).is_none());
                let token = free.collect::<Vec<_>>().get(words.below(toy.vocab)).copied();
                token.map(|token| tree.merge(parent, token).expect("the parent is there"))
            };
            let Some(child) = child else { return };
            seen.push(tree.token(child));
        }
    }
}

/// Context and path down to `node`.
pub fn prefix<N>(context: &[TokenId], tree: &DraftTree<N>, node: Option<usize>) -> Vec<TokenId> {
    let path = node.map(|node| tree.path_to(node)).unwrap_or_default();
    context.iter().copied().chain(path.into_iter().map(|node| tree.token(node))).collect()
}
