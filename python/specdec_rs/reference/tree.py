"""The tree of drafted tokens, and how its children are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .chances import Draw, Draws, Purpose
from .law import Law, one_hot, without


@dataclass(frozen=True)
class Node:
    """A drafted token.

    Attributes:
        token: its id.
        parent: the node before it, None for the context.
        q: the very law (shape V) that it was drawn from, given its earlier siblings. A token chosen
            by a rule that looked at the context only (n-gram, arg max, top-k) was drawn from a
            point mass.
    """

    token: int
    parent: int | None
    q: Law


@dataclass
class Tree:
    """Nodes numbered parents before children, siblings in the order they were drawn.

    Nothing may be dropped, re-sorted or relabelled after it was drawn: verification is exact only
    if `q` is the truth.
    """

    nodes: list[Node] = field(default_factory=list)

    def push(self, parent: int | None, token: int, q: Law) -> int:
        """Adds a node drawn from `q` (shape V), and returns its number.

        Raises:
            ValueError: no such parent; a token that `q` rules out.
        """
        if parent is not None and not 0 <= parent < len(self.nodes):
            raise ValueError(f"parent {parent} does not exist among {len(self.nodes)} nodes")
        if not 0 <= token < len(q) or not q[token] > 0:
            raise ValueError(f"token {token} cannot have been drawn from its law, p = 0 there")
        self.nodes.append(Node(token, parent, q))
        return len(self.nodes) - 1

    def push_without_replacement(self, parent: int | None, token: int, q: Law) -> int:
        """Adds a node drawn from `q` without the tokens of its earlier siblings."""
        left = without(q, self.tokens(self.children(parent)))
        if left is None:
            raise ValueError("earlier siblings have taken every token of the draft law")
        return self.push(parent, token, left)

    def push_deterministic(self, parent: int | None, token: int, size: int) -> int:
        """Adds a node chosen by a rule, in a vocabulary of `size`."""
        return self.push(parent, token, one_hot(token, size))

    def children(self, parent: int | None) -> list[int]:
        """Children of a node (None: of the context), in drawn order."""
        return [i for i, node in enumerate(self.nodes) if node.parent == parent]

    def child_with(self, parent: int | None, token: int) -> int | None:
        """The first child of `parent` that holds `token`."""
        found = (i for i in self.children(parent) if self.nodes[i].token == token)
        return next(found, None)

    def path_to(self, node: int | None) -> list[int]:
        """Nodes from the context to `node`, itself included."""
        path: list[int] = []
        while node is not None:
            path.insert(0, node)
            node = self.nodes[node].parent
        return path

    def tokens(self, nodes: Sequence[int]) -> list[int]:
        """Tokens of `nodes`."""
        return [self.nodes[i].token for i in nodes]


def chain(tokens: Sequence[int], q: Sequence[Law]) -> Tree:
    """The tree with one path: token i drawn from `q[i]`; shapes (k,) and (k, V)."""
    tree = Tree()
    for i, (token, law) in enumerate(zip(tokens, q, strict=True)):
        tree.push(i - 1 if i else None, token, law)
    return tree


def draw_children(
    tree: Tree, parent: int | None, q: Law, count: int, *, position: int, draws: Draws
) -> list[int]:
    """Up to `count` children of `parent`, drawn from `q` (shape V) without replacement.

    Fewer if `q` runs out of tokens. `position` is the absolute index of the children's token.
    Yang et al., arXiv:2401.06706; Jeon et al., arXiv:2402.14160.
    """
    drawn = []
    for i in range(count):
        left = without(q, tree.tokens(tree.children(parent)))
        if left is None:
            break
        token = draws.draw(Draw(Purpose.DRAFT, parent, i), position, left)
        drawn.append(tree.push(parent, token, left))
    return drawn


def draw_children_with_replacement(
    tree: Tree, parent: int | None, q: Law, count: int, *, position: int, draws: Draws
) -> list[int]:
    """`count` children of `parent`, each drawn from all of `q`; tokens may repeat.

    Miao et al. (SpecInfer), arXiv:2305.09781.
    """
    drawn = []
    for i in range(count):
        token = draws.draw(Draw(Purpose.DRAFT, parent, i), position, q)
        drawn.append(tree.push(parent, token, q))
    return drawn


def draw_tree(
    q_at: Callable[[list[int]], Law], count: int, depth: int, *, position: int, draws: Draws
) -> Tree:
    """The full tree of `depth` levels with up to `count` children at each node.

    Args:
        q_at: the draft law (shape V) after the drafted tokens given.
        count: children of a node; 1 gives a chain.
        depth: tokens on a path.
        position: committed length, the absolute index of the first drafted token.
        draws: where the tokens come from. With `Coupled` noise a child after the first is drawn
            by the same race among the tokens left, which gives the top `count` of the race.
    """
    tree = Tree()
    level: list[int | None] = [None]
    for below in range(depth):
        grown: list[int | None] = []
        for parent in level:
            q = q_at(tree.tokens(tree.path_to(parent)))
            grown += draw_children(tree, parent, q, count, position=position + below, draws=draws)
        level = grown
    return tree
