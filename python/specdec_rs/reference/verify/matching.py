"""Sample and match: draw the target's own token, and stay on the tree while it is drafted.

**Theorem.** Let the token y at each place be drawn from the target's law p by a draw that does not
look at the tree. Emit y, and go on from the child that holds y if there is one. Then every emitted
token has law p given those before it, whatever the tree: the tree only decides how many tokens one
forward pays for.

Greedy decoding is the case of one-hot laws. With `Coupled` noise the tree may even have been drawn
with the same noise: y is a function of the noise and p (Daliri, Musco, Suresh, arXiv:2408.07978).
"""

from __future__ import annotations

from ..chances import Draw, Draws, Purpose
from ..law import Law, argmax
from ..tree import Tree
from .outcome import LawAt, Outcome


def verify(tree: Tree, p_at: LawAt, position: int, draws: Draws) -> Outcome:
    """Walks down while the drawn token is among the children.

    Args:
        tree: the drafts.
        p_at: the target's law after each node.
        position: committed length, the absolute index of the first token emitted.
        draws: one token drawn for each place visited.
    """
    path: list[int] = []
    node: int | None = None
    while True:
        y = draws.draw(Draw(Purpose.TARGET, node), position + len(path), p_at(node))
        child = tree.child_with(node, y)
        if child is None:
            return Outcome(tuple(path), y)
        path.append(child)
        node = child


def verify_greedy(tree: Tree, p_at: LawAt) -> Outcome:
    """Walks down while the arg max of the target's law is among the children."""

    class ArgMax:
        def draw(self, at: Draw, position: int, law: Law) -> int:  # noqa: ARG002
            return argmax(law)

    return verify(tree, p_at, 0, ArgMax())
