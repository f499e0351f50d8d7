"""The golden case G1 and what the tests ask of it: laws that are the same at every place."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from specdec_rs.reference import Law, Outcome, Tree, exact
from specdec_rs.reference.chances import Chances
from specdec_rs.reference.enumerator import Branches, enumerate_outcomes
from specdec_rs.reference.tree import draw_tree
from specdec_rs.reference.verify import LawAt

P = exact([5, 3, 2])
Q = exact([2, 2, 6])

Verifier = Callable[[Tree, LawAt, int, Chances], Outcome]
Grow = Callable[[Branches], Tree]


def drawn(q: Law = Q, children: int = 1, depth: int = 1) -> Grow:
    """Children drawn from `q` without replacement at every node."""
    return lambda branches: draw_tree(lambda _: q, children, depth, position=0, draws=branches)


def outcomes(grow: Grow, verifier: Verifier, p: Law = P) -> dict[tuple[int, int], Fraction]:
    """The law of (number of accepted tokens, first emitted token)."""

    def run(branches: Branches) -> tuple[int, int]:
        tree = grow(branches)
        outcome = verifier(tree, lambda _: p, 0, branches)
        return len(outcome.path), outcome.tokens(tree)[0]

    return enumerate_outcomes(run)


def accepted(law: dict[tuple[int, int], Fraction]) -> Fraction:
    """Expected number of accepted tokens."""
    return sum((length * x for (length, _), x in law.items()), Fraction(0))


def first_token(law: dict[tuple[int, int], Fraction], size: int = 3) -> tuple[Fraction, ...]:
    """The law of the first emitted token."""
    return tuple(
        sum((x for (_, first), x in law.items() if first == token), Fraction(0))
        for token in range(size)
    )


def after_rejection(law: dict[tuple[int, int], Fraction], size: int = 3) -> tuple[Fraction, ...]:
    """The law of the token emitted when none is accepted."""
    rejected = {key: x for key, x in law.items() if key[0] == 0}
    mass = sum(rejected.values(), Fraction(0))
    return tuple(rejected.get((0, token), Fraction(0)) / mass for token in range(size))
