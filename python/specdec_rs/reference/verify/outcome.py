"""What verifiers take and give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..law import Law
from ..tree import Tree

LawAt = Callable[[int | None], Law]
"""The target's law (shape V) of the token that follows a node (None: the context)."""


@dataclass(frozen=True, order=True)
class Outcome:
    """What a step emits: the tokens of `path` (accepted nodes, downwards), then `next`."""

    path: tuple[int, ...]
    next: int

    def tokens(self, tree: Tree) -> tuple[int, ...]:
        """The emitted tokens."""
        return (*tree.tokens(self.path), self.next)
