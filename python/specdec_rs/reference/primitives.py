"""The verifiers on rows of probabilities and a seed.

What `specdec_rs.numpy` does, with the same names and shapes, one number at a time. A chain of k
drafts has k + 1 target rows; a tree of n nodes has n + 1, row 0 after the context and row i + 1
after node i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .chances import Coupled, Draw, Independent, Purpose
from .law import Law, check_law
from .rng import WORD, seed_words
from .tree import Tree, chain
from .verify import Outcome, block, matching, standard, traversal


class Verified(NamedTuple):
    """Accepted tokens and the one drawn after them; how many were accepted."""

    token_ids: tuple[int, ...]
    num_accepted: int


def verify_chain(
    target_probs: Sequence[Law],
    draft_probs: Sequence[Law],
    draft_token_ids: Sequence[int],
    *,
    method: str,
    seed: int,
    position: int = 0,
) -> Verified:
    """Verifies k drafted tokens.

    Args:
        target_probs: shape (k + 1, V), the target's laws.
        draft_probs: shape (k, V), the law that each token was drawn from.
        draft_token_ids: shape (k,).
        method: "greedy", "standard", "block" or "coupled".
        seed: 64 bits; with `position` it decides every number.
        position: committed length, the absolute index of the first drafted token.

    Raises:
        ValueError: shapes that do not fit, a row that is no law, an impossible token, another
            method.
    """
    p, q = _checked(target_probs, draft_probs, len(draft_token_ids))
    _check_counter(seed, position)
    tree = chain(draft_token_ids, q)
    if method == "block":
        tokens = list(draft_token_ids)
        outcome = block.verify_chain(p, q, tokens, position, Independent(seed, position))
    elif method in ("greedy", "standard", "coupled"):
        outcome = _verify(method, tree, _law_at(p), seed, position)
    else:
        raise ValueError(f"method is {method!r}, expected greedy, standard, block or coupled")
    return Verified(outcome.tokens(tree), len(outcome.path))


def verify_tree(
    target_probs: Sequence[Law],
    draft_probs: Sequence[Law],
    draft_token_ids: Sequence[int],
    parents: Sequence[int],
    *,
    method: str,
    seed: int,
    position: int = 0,
) -> Verified:
    """Verifies a tree of n drafted tokens.

    Args:
        target_probs: shape (n + 1, V).
        draft_probs: shape (n, V); row i is the law that node i was drawn from *before* its earlier
            siblings were taken out; one-hot for a token chosen by a rule.
        draft_token_ids: shape (n,).
        parents: shape (n,), parents before children, siblings in drawn order, -1 the context.
        method: "greedy", "standard", "traversal" or "coupled".
        seed: 64 bits; with `position` it decides every number.
        position: committed length, the absolute index of the first drafted token.

    Raises:
        ValueError: as `verify_chain`; a parent that is not before its child.
    """
    n = len(draft_token_ids)
    p, q = _checked(target_probs, draft_probs, n)
    _check_counter(seed, position)
    if len(parents) != n:
        raise ValueError(f"{len(parents)} parents for {n} nodes; there must be one for each")
    tree = Tree()
    for token, parent, law in zip(draft_token_ids, parents, q, strict=True):
        tree.push_without_replacement(None if parent == -1 else parent, token, law)
    if method not in ("greedy", "standard", "traversal", "coupled"):
        raise ValueError(f"method is {method!r}, expected greedy, standard, traversal or coupled")
    outcome = _verify(method, tree, _law_at(p), seed, position)
    return Verified(outcome.tokens(tree), len(outcome.path))


def sample(probs: Law, *, seed: int, position: int) -> int:
    """A token of the law `probs` (shape V), by the noise of `coupled` at `position`."""
    _check_counter(seed, position)
    return Coupled(seed).draw(Draw(Purpose.TARGET, None), position, check_law(probs, "probs"))


def _verify(
    method: str, tree: Tree, p_at: Callable[[int | None], Law], seed: int, position: int
) -> Outcome:
    if method == "greedy":
        return matching.verify_greedy(tree, p_at)
    if method == "coupled":
        return matching.verify(tree, p_at, position, Coupled(seed))
    verify = standard.verify if method == "standard" else traversal.verify
    return verify(tree, p_at, position, Independent(seed, position))


def _checked(
    target_probs: Sequence[Law], draft_probs: Sequence[Law], count: int
) -> tuple[list[Law], list[Law]]:
    p = _rows(target_probs, "target_probs", count + 1)
    q = _rows(draft_probs, "draft_probs", count)
    if q and len(q[0]) != len(p[0]):
        raise ValueError(f"draft_probs has {len(q[0])} tokens, target_probs has {len(p[0])}")
    return p, q


def _check_counter(seed: int, position: int) -> None:
    seed_words(seed)
    if not 0 <= position < WORD:
        raise ValueError(f"position is {position}, expected a number of tokens under 2^32")


def _rows(rows: Sequence[Law], name: str, count: int) -> list[Law]:
    if len(rows) != count:
        raise ValueError(f"{name} has {len(rows)} rows, expected {count}")
    size = len(rows[0]) if rows else 0
    for i, row in enumerate(rows):
        if len(row) != size:
            raise ValueError(f"row {i} of {name} has {len(row)} probabilities, row 0 has {size}")
    return [check_law(row, f"row {i} of {name}") for i, row in enumerate(rows)]


def _law_at(p: Sequence[Law]) -> Callable[[int | None], Law]:
    return lambda node: p[0 if node is None else node + 1]
