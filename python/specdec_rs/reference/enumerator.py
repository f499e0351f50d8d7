"""The exact law of code that draws at random: it is run once for every way its draws can come out.

What comes out are fractions, compared with `==`: no estimate, no p-value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import TypeVar

from .chances import Draw
from .law import ONE, ZERO, Law, Number

T = TypeVar("T", bound=Hashable)
Text = tuple[int, ...]


class Branches:
    """Chances that take every way, one after the other, depth first. Laws must be fractions."""

    def __init__(self) -> None:
        # For each decision of this run: the outcomes not explored yet, the current one last.
        self._open: list[list[tuple[int, Fraction]]] = []
        self._taken = 0

    def choose(self, probabilities: Sequence[Number]) -> int:
        """Takes outcome i with probability `probabilities[i]`."""
        if self._taken == len(self._open):
            outcomes = [(i, Fraction(p)) for i, p in enumerate(probabilities) if p > 0]
            if sum(p for _, p in outcomes) != 1:
                raise ValueError(f"{probabilities} do not sum to 1; enumerate with fractions")
            self._open.append(outcomes)
        self._taken += 1
        return self._open[self._taken - 1][-1][0]

    def accept(self, at: Draw, p: Number, q: Number) -> bool:  # noqa: ARG002 - part of `Chances`
        """Both ways, with probability min(1, p / q)."""
        yes = _accept_probability(p, q)
        return self.choose([yes, 1 - yes]) == 0

    def draw(self, at: Draw, position: int, law: Law) -> int:  # noqa: ARG002 - part of `Draws`
        """Every possible token of `law`."""
        return self.choose(law)

    def weight(self) -> Fraction:
        """Probability of this run."""
        product = ONE
        for outcomes in self._open:
            product *= outcomes[-1][1]
        return product

    def advance(self) -> bool:
        """Moves to the next run; False when there is none."""
        if self._taken != len(self._open):
            raise RuntimeError("a run took other decisions when it was repeated")
        self._taken = 0
        while self._open:
            self._open[-1].pop()
            if self._open[-1]:
                return True
            self._open.pop()
        return False


class SharedNumbers(Branches):
    """Branches over the uniform numbers themselves: a key that comes back brings the same number.

    Exact where `Branches` only assumes that all draws are independent. A number is known as the
    interval that the decisions of this run have left of (0, 1).

    Args:
        key: what a number depends on, from the committed length (set `committed` at the start of
            every round) and the draw.
    """

    def __init__(self, key: Callable[[int, Draw], Hashable]) -> None:
        super().__init__()
        self.committed = 0
        self._key = key
        self._known: dict[Hashable, tuple[Fraction, Fraction]] = {}

    def advance(self) -> bool:
        """Moves to the next run, where no number is known."""
        self._known.clear()
        return super().advance()

    def accept(self, at: Draw, p: Number, q: Number) -> bool:
        """Whether u * q < p, with the number u of the draw."""
        return self._below(self._key(self.committed, at), _accept_probability(p, q))

    def draw(self, at: Draw, position: int, law: Law) -> int:  # noqa: ARG002 - part of `Draws`
        """The token at quantile u of `law`."""
        key = self._key(self.committed, at)
        mass = ZERO
        for token, p in enumerate(law):
            mass += Fraction(p)
            if p > 0 and self._below(key, mass):
                return token
        raise ValueError(f"{law} does not sum to 1; enumerate with fractions")

    def _below(self, key: Hashable, bound: Fraction) -> bool:
        low, high = self._known.get(key, (ZERO, ONE))
        if not low < bound < high:
            return bound >= high
        yes = (bound - low) / (high - low)
        if self.choose([yes, 1 - yes]) == 0:
            self._known[key] = (low, bound)
            return True
        self._known[key] = (bound, high)
        return False


def _accept_probability(p: Number, q: Number) -> Fraction:
    if p == 0:
        return ZERO
    return ONE if p >= q else Fraction(p / q)


def enumerate_outcomes(
    run: Callable[[Branches], T], branches: Branches | None = None
) -> dict[T, Fraction]:
    """The law of what `run` returns; `run` must depend on nothing but the draws it makes."""
    branches = branches or Branches()
    law: dict[T, Fraction] = {}
    while True:
        outcome = run(branches)
        law[outcome] = law.get(outcome, ZERO) + branches.weight()
        if not branches.advance():
            return law


def enumerate_rounds(
    one_round: Callable[[Text, Branches], Sequence[int]], length: int, context: Text = ()
) -> dict[Text, Fraction]:
    """The law of the first `length` tokens after `context` that repeated rounds emit.

    Args:
        one_round: draft and verify once after a context; returns the emitted tokens, one at least.
        length: tokens of the text; a round that emits more is cut.
        context: tokens committed before.

    Rounds depend on each other through the committed tokens alone, so each committed text is
    enumerated once. Texts of probability 0 do not occur as keys.
    """
    done: dict[Text, Fraction] = {}
    open_texts: dict[Text, Fraction] = {(): ONE}
    while open_texts:
        text = min(open_texts, key=len)
        weight = open_texts.pop(text)

        def run(branches: Branches, text: Text = text) -> Text:
            return tuple(one_round(context + text, branches))

        law = enumerate_outcomes(run)
        for tokens, p in law.items():
            longer = (text + tokens)[:length]
            target = done if len(longer) == length else open_texts
            target[longer] = target.get(longer, ZERO) + weight * p
    return done


def law_of_sequence(
    target: Callable[[Text], Law], length: int, context: Text = ()
) -> dict[Text, Fraction]:
    """The law of the first `length` tokens after `context` that plain decoding emits.

    P(x_1 .. x_n) = product of target(context + x_1 .. x_(i-1))[x_i]. Texts of probability 0 do not
    occur as keys.
    """
    law: dict[Text, Fraction] = {(): ONE}
    for _ in range(length):
        law = {
            (*text, token): weight * Fraction(p)
            for text, weight in law.items()
            for token, p in enumerate(target(context + text))
            if p > 0
        }
    return law
