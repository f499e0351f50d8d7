//! Sample and match: draw the target's own token, and stay on the tree while it is proposed.
//!
//! **Theorem.** Let the token y at each place be drawn from the target's law p by a draw that does
//! not look at the tree. Emit y, and go on from the child that holds y if there is one. Then every
//! emitted token has law p given those before it, whatever the tree: the tree only decides how many
//! tokens one forward pays for.
//!
//! Greedy decoding is the case of one-hot laws. With [`Coupled`](crate::chances::Coupled) draws,
//! keyed by absolute position, the tree may even have been drawn with the same noise (Daliri,
//! Musco, Suresh, arXiv:2408.07978): y is a function of the noise and p.

use super::{Laws, Outcome, end};
use crate::chances::{Draw, Draws, Purpose};
use crate::{DraftTree, LawError, Number};

/// Walks down while the drawn token is among the children.
///
/// # Errors
/// What `laws` reports.
pub fn verify<N: Number>(
    tree: &DraftTree<N>,
    laws: &mut dyn Laws<N>,
    position: usize,
    draws: &mut dyn Draws<N>,
) -> Result<Outcome, LawError> {
    let mut path = Vec::new();
    loop {
        let node = path.last().copied();
        let law = laws.at(node)?;
        let next = draws.draw(Draw::at(Purpose::Target, node), position + path.len(), law);
        match tree.child_with(node, next) {
            Some(child) => path.push(child),
            None => return Ok(Outcome { walk: end(tree, &path), path, next }),
        }
    }
}
