"""The ratio test, child after child.

**Theorem.** At a node with target law p, let the children be drawn one after the other, each from
a law q that may depend on its earlier siblings. Start with P = p. For each child x in that order:
accept it with probability min(1, P(x) / q(x)), else replace P by norm((P - q)+) and try the next;
after the last one emit y ~ P. Then the token that follows the node has law p.

*Proof.* By induction from the last child: x ~ q is accepted as x with probability min(P(x), q(x));
it is rejected with probability sum (P - q)+, and then the token has law norm((P - q)+). Together
P(x).

The cases: one child is the chain of Leviathan et al. (arXiv:2211.17192) and Chen et al.
(arXiv:2302.01318); q the same for all children is SpecInfer (with replacement, arXiv:2305.09781);
q without its earlier draws is recursive rejection without replacement (arXiv:2401.06706,
arXiv:2402.14160, arXiv:2402.12374); a point mass is accepted with probability P(x), else P is
zeroed there and renormalised (EAGLE-2, arXiv:2406.16858). They mix freely at one node.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..chances import Chances, Draw, Purpose
from ..law import Law, normalise, surplus
from ..tree import Tree
from .outcome import LawAt, Outcome


def verify(tree: Tree, p_at: LawAt, position: int, chances: Chances) -> Outcome:
    """Walks down while a child passes its test.

    Args:
        tree: the drafts.
        p_at: the target's law after each node.
        position: committed length, the absolute index of the first token emitted.
        chances: the randomness.
    """
    path: list[int] = []
    node: int | None = None
    while True:
        p = p_at(node)
        child, rest = try_children(tree, node, p, chances)
        if child is None:
            purpose = Purpose.TARGET if rest is p else Purpose.RESIDUAL
            y = chances.draw(Draw(purpose, node), position + len(path), rest)
            return Outcome(tuple(path), y)
        path.append(child)
        node = child


def try_children(tree: Tree, node: int | None, p: Law, chances: Chances) -> tuple[int | None, Law]:
    """The accepted child of `node`, if any, and what rejected ones have left of `p` (shape V)."""
    rest = p
    for child in tree.children(node):
        x, q = tree.nodes[child].token, tree.nodes[child].q
        if chances.accept(Draw(Purpose.ACCEPT, child), rest[x], q[x]):
            return child, rest
        left, mass = surplus(rest, q)
        # No surplus means that P = q, where only rounding can reject: P stays.
        rest = normalise(left) if mass > 0 else rest
    return None, rest


def verify_chain(
    p: Sequence[Law], q: Sequence[Law], tokens: Sequence[int], position: int, chances: Chances
) -> Outcome:
    """The chain as the papers write it; the same as `verify` on a tree with one path.

    Args:
        p: target laws, shape (k + 1, V).
        q: laws that the tokens were drawn from, shape (k, V).
        tokens: the draft, shape (k,).
        position: committed length, the absolute index of the first token emitted.
        chances: the randomness.
    """
    for i, x in enumerate(tokens):
        if not chances.accept(Draw(Purpose.ACCEPT, i), p[i][x], q[i][x]):
            left, mass = surplus(p[i], q[i])
            at = Draw(Purpose.RESIDUAL if mass > 0 else Purpose.TARGET, i - 1 if i else None)
            y = chances.draw(at, position + i, normalise(left) if mass > 0 else p[i])
            return Outcome(tuple(range(i)), y)
    k = len(tokens)
    y = chances.draw(Draw(Purpose.TARGET, k - 1 if k else None), position + k, p[k])
    return Outcome(tuple(range(k)), y)
