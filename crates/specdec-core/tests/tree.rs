//! The draft tree: what it refuses, and how its parts are numbered.

use std::sync::Arc;

use specdec_core::verify::PathLaws;
use specdec_core::{DraftTree, Law, LawError, Laws, Origin, TreeError};

#[test]
fn parents_come_first_and_siblings_differ() {
    let mut tree: DraftTree = DraftTree::new();
    let fixed = || Origin::Deterministic;
    assert_eq!(tree.push(Some(0), 5, fixed()), Err(TreeError::Parent { parent: 0, len: 0 }));
    assert_eq!(tree.push(None, 5, fixed()), Ok(0));
    assert_eq!(tree.push(None, 5, fixed()), Err(TreeError::Duplicate { token: 5, node: 0 }));
    assert_eq!(tree.push(Some(0), 5, fixed()), Ok(1));
    assert_eq!(tree.push(None, 6, fixed()), Ok(2));
    assert_eq!(tree.push(Some(1), 7, fixed()), Ok(3));
    assert_eq!(tree.children(None), [0, 2]);
    assert_eq!(tree.children(Some(0)), [1]);
    assert_eq!((tree.depth(0), tree.depth(3), tree.max_depth()), (1, 3, 3));
    assert_eq!(tree.path_to(3), [0, 1, 3]);
    assert_eq!(tree.child_with(None, 6), Some(2));
    assert_eq!(tree.child_with(Some(2), 6), None);
}

#[test]
fn a_drawn_token_must_be_possible() {
    let law = Arc::new(Law::from_dense(vec![0.5, 0.0, 0.5]).expect("a law"));
    let mut tree = DraftTree::new();
    let drawn = || Origin::Drawn(Arc::clone(&law));
    assert_eq!(tree.push(None, 1, drawn()), Err(TreeError::Impossible { token: 1 }));
    assert_eq!(tree.push(None, 3, drawn()), Err(TreeError::Impossible { token: 3 }));
    assert_eq!(tree.push(None, 2, drawn()), Ok(0));
    // Without replacement it cannot come again, whichever way.
    assert_eq!(tree.push(None, 2, drawn()), Err(TreeError::Duplicate { token: 2, node: 0 }));
}

#[test]
fn a_walk_that_comes_back_finds_the_laws_of_its_path() {
    let mut tree: DraftTree = DraftTree::chain(&[4, 5]);
    let branch = tree.merge(None, 6).expect("the context");
    let (mut made, mut buffers) = (Vec::new(), vec![Law::one_hot(9)]);
    let mut laws = PathLaws::new(&tree, &mut buffers, |node, law| {
        made.push(node);
        *law = Law::one_hot(node.map_or(0, |node| node as u32 + 1));
        if node == Some(1) { Err(LawError::NoToken { len: 0 }) } else { Ok(()) }
    });
    for (node, token) in [(None, 0), (Some(0), 1), (None, 0), (Some(0), 1), (Some(branch), 3)] {
        assert_eq!(laws.at(node).expect("a law").only_token(), Some(token));
    }
    // A law that could not be made is not there the next time either.
    assert!(laws.at(Some(1)).is_err() && laws.at(Some(1)).is_err());
    drop(laws);
    assert_eq!(made, [None, Some(0), Some(branch), Some(1), Some(1)]);
}

#[test]
fn laws_hold_what_they_were_given() {
    let sparse = Law::from_sparse(vec![2, 7], vec![1.0, 3.0]).expect("a law");
    let quarters = [0, 2, 7, 8].map(|token| (4.0 * sparse.prob(token)) as u32);
    assert_eq!(quarters, [0, 1, 3, 0]);
    assert_eq!(sparse.without(&[7]).and_then(|law| law.only_token()), Some(2));
    assert_eq!(sparse.without(&[2, 7]), None);
    assert!(Law::from_sparse(vec![2, 2], vec![1.0, 1.0]).is_err());
    assert!(Law::from_sparse(vec![2], vec![1.0, 1.0]).is_err());
    let dense = Law::from_dense(vec![0.0, 2.0, 0.0]).expect("a law");
    assert!(dense.is_one_hot());
    assert!(!sparse.is_one_hot());
}
