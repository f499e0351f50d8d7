//! [`DraftTree`]: the proposals of one step, all sources merged.

use std::sync::Arc;

use crate::chances::{Draw, Draws, Purpose};
use crate::{Law, Number, TokenId, TreeError};

/// How a node was chosen. A verifier may only trust what is said here, and it must be the truth:
/// the law that scores a node is the very law it was drawn from.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin<N = f64> {
    /// By a rule that looked at the context only (n-gram, arg max, top-k): a point mass.
    Deterministic,
    /// Drawn from this law with the tokens of all earlier siblings taken out (without replacement).
    Drawn(Arc<Law<N>>),
    /// Drawn from this law whatever its siblings are (with replacement); it may repeat one of them.
    Independent(Arc<Law<N>>),
}

#[derive(Debug, Clone)]
struct Node<N> {
    token: TokenId,
    parent: Option<usize>,
    depth: usize,
    origin: Origin<N>,
    children: Vec<usize>,
}

/// A tree of proposed tokens; its root is the context, which is no node.
///
/// Nodes are numbered parents before children. Siblings keep the order in which they were pushed,
/// which for drawn ones must be the order in which they were drawn: nothing may be dropped,
/// re-sorted or relabelled after it was drawn.
#[derive(Debug, Clone)]
pub struct DraftTree<N = f64> {
    nodes: Vec<Node<N>>,
    roots: Vec<usize>,
}

impl<N> Default for DraftTree<N> {
    fn default() -> Self {
        Self { nodes: Vec::new(), roots: Vec::new() }
    }
}

impl<N: Number> DraftTree<N> {
    /// An empty tree: a plain step.
    pub fn new() -> Self {
        Self::default()
    }

    /// A single path of deterministic tokens.
    pub fn chain(tokens: &[TokenId]) -> Self {
        let mut tree = Self::new();
        for (i, &token) in tokens.iter().enumerate() {
            tree.insert(i.checked_sub(1), token, Origin::Deterministic);
        }
        tree
    }

    /// Adds `token` as the last child of `parent` (`None`: the context) and returns its node.
    ///
    /// # Errors
    /// No such parent; a sibling with the same token (unless it is [`Origin::Independent`]); a drawn
    /// token that its law rules out.
    pub fn push(
        &mut self,
        parent: Option<usize>,
        token: TokenId,
        origin: Origin<N>,
    ) -> Result<usize, TreeError> {
        if let Some(parent) = parent.filter(|&parent| parent >= self.len()) {
            return Err(TreeError::Parent { parent, len: self.len() });
        }
        let repeats = matches!(origin, Origin::Independent(_));
        if let Some(node) = self.child_with(parent, token).filter(|_| !repeats) {
            return Err(TreeError::Duplicate { token, node });
        }
        if let Origin::Drawn(law) | Origin::Independent(law) = &origin
            && law.weight(token) <= N::zero()
        {
            return Err(TreeError::Impossible { token });
        }
        Ok(self.insert(parent, token, origin))
    }

    /// The child of `parent` that holds `token`: one that is there, however it was chosen, or a new
    /// deterministic one.
    ///
    /// # Errors
    /// No such parent.
    pub fn merge(&mut self, parent: Option<usize>, token: TokenId) -> Result<usize, TreeError> {
        match self.push(parent, token, Origin::Deterministic) {
            Err(TreeError::Duplicate { node, .. }) => Ok(node),
            result => result,
        }
    }

    /// Draws up to `count` more children of `parent` from `q` without the tokens of the children
    /// already there, without replacement, and returns their nodes in that order; fewer where `q`
    /// runs out of tokens.
    ///
    /// `committed` is the number of tokens before the tree. Whether to call this, and with which
    /// count, may depend on anything drawn before; no child may be dropped afterwards.
    pub fn draw(
        &mut self,
        parent: Option<usize>,
        q: &Arc<Law<N>>,
        count: usize,
        committed: usize,
        draws: &mut dyn Draws<N>,
    ) -> Vec<usize> {
        let (draw, position) = self.next_draw(parent, committed);
        let siblings = self.children(parent);
        let taken: Vec<TokenId> = siblings.iter().map(|&child| self.token(child)).collect();
        let drawn = draws.draw_without(draw, position, q, &taken, count);
        let origin = || Origin::Drawn(Arc::clone(q));
        drawn.into_iter().map(|token| self.insert(parent, token, origin())).collect()
    }

    /// Draws `count` more children of `parent` from `q` with replacement (Miao et al.,
    /// arXiv:2305.09781); tokens may repeat.
    pub fn draw_independent(
        &mut self,
        parent: Option<usize>,
        q: &Arc<Law<N>>,
        count: usize,
        committed: usize,
        draws: &mut dyn Draws<N>,
    ) -> Vec<usize> {
        let mut drawn = Vec::new();
        for _ in 0..count {
            let (draw, position) = self.next_draw(parent, committed);
            let token = draws.draw(draw, position, q);
            drawn.push(self.insert(parent, token, Origin::Independent(Arc::clone(q))));
        }
        drawn
    }

    /// The number of the next child: siblings of any kind count, so none is used twice.
    fn next_draw(&self, parent: Option<usize>, committed: usize) -> (Draw, usize) {
        let draw = self.children(parent).len() as u32;
        let depth = parent.map_or(0, |parent| self.depth(parent));
        (Draw { draw, ..Draw::at(Purpose::Draft, parent) }, committed + depth)
    }

    fn insert(&mut self, parent: Option<usize>, token: TokenId, origin: Origin<N>) -> usize {
        let node = self.nodes.len();
        let depth = 1 + parent.map_or(0, |parent| self.nodes[parent].depth);
        self.nodes.push(Node { token, parent, depth, origin, children: Vec::new() });
        match parent {
            Some(parent) => self.nodes[parent].children.push(node),
            None => self.roots.push(node),
        }
        node
    }
}

impl<N> DraftTree<N> {
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing is proposed.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Token of a node.
    ///
    /// # Panics
    /// Here and below, for a node that the tree does not have.
    pub fn token(&self, node: usize) -> TokenId {
        self.nodes[node].token
    }

    /// Parent of a node, `None` for children of the context.
    pub fn parent(&self, node: usize) -> Option<usize> {
        self.nodes[node].parent
    }

    /// How the node was chosen.
    pub fn origin(&self, node: usize) -> &Origin<N> {
        &self.nodes[node].origin
    }

    /// Tokens from the context to the node, itself included: 1 for children of the context.
    pub fn depth(&self, node: usize) -> usize {
        self.nodes[node].depth
    }

    /// Length of the longest path.
    pub fn max_depth(&self) -> usize {
        self.nodes.iter().map(|node| node.depth).max().unwrap_or(0)
    }

    /// Children of a node (`None`: of the context), in the order they were pushed.
    pub fn children(&self, parent: Option<usize>) -> &[usize] {
        parent.map_or(&self.roots, |parent| &self.nodes[parent].children)
    }

    /// The child of `parent` that holds `token`.
    pub fn child_with(&self, parent: Option<usize>, token: TokenId) -> Option<usize> {
        self.children(parent).iter().copied().find(|&child| self.token(child) == token)
    }

    /// Writes the tokens from the context to `node`, its own included, into `path`; none for the
    /// context itself.
    pub fn tokens_to(&self, node: Option<usize>, path: &mut Vec<TokenId>) {
        path.clear();
        path.extend(std::iter::successors(node, |&node| self.parent(node)).map(|i| self.token(i)));
        path.reverse();
    }

    /// Nodes from the context to `node`, itself included.
    pub fn path_to(&self, node: usize) -> Vec<usize> {
        let mut path: Vec<usize> =
            std::iter::successors(Some(node), |&node| self.parent(node)).collect();
        path.reverse();
        path
    }
}
