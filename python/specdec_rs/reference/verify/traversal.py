"""Traversal verification: block verification from the leaves of a tree upwards.

Weng et al., arXiv:2505.12398.

**Theorem.** Let the children of every node be drawn one after the other, each from a law q that
may depend on its earlier siblings, and let a node that was drawn in its place carry the acceptance
a and the law M of the token after it: at the root a = 1, M = p. Take its children in drawn order:
child x carries a' = min(a * M(x) / q(x), 1) and its own p, and accepts its subtree or not, by this
same rule. Where it does not, the node goes on with R = (a * M - q)+, S = sum R,

    a <- S / (S + 1 - a),   M <- R / S,

and after its last child it ends the path with probability a and emits y ~ M. The emitted tokens
have the target's law. The root always ends with a = 1. On a chain this is block verification.
"""

from __future__ import annotations

from ..chances import Chances, Draw, Purpose
from ..law import ONE, ZERO, Law, Number, normalise, surplus
from ..tree import Tree
from .outcome import LawAt, Outcome


def verify(tree: Tree, p_at: LawAt, position: int, chances: Chances) -> Outcome:
    """Accepts the first path, from the leaves upwards, that passes its test.

    Args:
        tree: the drafts.
        p_at: the target's law after each node.
        position: committed length, the absolute index of the first token emitted.
        chances: the randomness; every node is tested at most once, the context never fails.
    """

    def visit(node: int | None, a: Number) -> Outcome | None:
        """What the subtree of `node`, which carries `a`, emits, if it accepts."""
        law = p = p_at(node)
        for child in tree.children(node):
            x, q = tree.nodes[child].token, tree.nodes[child].q
            outcome = visit(child, min(a * law[x] / q[x], ONE))
            if outcome is not None:
                return outcome
            a, law = after_rejection(a, law, q)
        if not chances.accept(Draw(Purpose.ACCEPT, node), a, ONE):
            return None
        path = tree.path_to(node)
        purpose = Purpose.TARGET if law is p else Purpose.RESIDUAL
        return Outcome(tuple(path), chances.draw(Draw(purpose, node), position + len(path), law))

    outcome = visit(None, ONE)
    if outcome is None:
        raise AssertionError("the context was rejected, although its acceptance is 1")
    return outcome


def after_rejection(a: Number, law: Law, q: Law) -> tuple[Number, Law]:
    """Acceptance and law (shape V) of a node whose child, drawn from `q`, did not accept."""
    left, mass = surplus(law, q, a)
    if mass > 0:
        return mass / (mass + 1 - a), normalise(left)
    # Nothing is left: all of a node with a = 1 is still to be emitted (only rounding leads here,
    # as the child would have accepted), and nothing of any other.
    return (ONE if a == 1 else ZERO), law
