//! [`PathLaws`]: laws made when they are asked for, and kept while the walk is below them.

use super::Laws;
use crate::{DraftTree, Law, LawError, Number};

/// The laws at the places of a tree by a function that makes them, one kept for each depth: a walk
/// that comes back up finds the laws of its path as it left them, and no law is made twice for it.
#[derive(Debug)]
pub struct PathLaws<'a, M, N = f64> {
    tree: &'a DraftTree<N>,
    make: M,
    /// By depth; the buffers serve the next walk too.
    laws: &'a mut Vec<Law<N>>,
    /// Whose law stands at each depth: 0 of the context, i + 1 of node i.
    rows: Vec<Option<usize>>,
}

impl<'a, M, N> PathLaws<'a, M, N>
where
    N: Number,
    M: FnMut(Option<usize>, &mut Law<N>) -> Result<(), LawError>,
{
    /// Laws for one walk over `tree`: `make` writes the law of the token that follows a node
    /// (`None`: the context), over whatever stands in its buffer.
    pub fn new(tree: &'a DraftTree<N>, laws: &'a mut Vec<Law<N>>, make: M) -> Self {
        Self { tree, make, laws, rows: Vec::new() }
    }
}

impl<M, N> Laws<N> for PathLaws<'_, M, N>
where
    N: Number,
    M: FnMut(Option<usize>, &mut Law<N>) -> Result<(), LawError>,
{
    fn at(&mut self, node: Option<usize>) -> Result<&Law<N>, LawError> {
        let depth = node.map_or(0, |node| self.tree.depth(node));
        if self.laws.len() <= depth {
            self.laws.resize_with(depth + 1, || Law::one_hot(0));
        }
        if self.rows.len() <= depth {
            self.rows.resize(depth + 1, None);
        }
        let row = node.map_or(0, |node| node + 1);
        if self.rows[depth] != Some(row) {
            self.rows[depth] = None;
            (self.make)(node, &mut self.laws[depth])?;
            self.rows[depth] = Some(row);
        }
        Ok(&self.laws[depth])
    }
}
