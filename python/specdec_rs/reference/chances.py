"""Where a verifier gets its randomness from.

Production has two families of keyed numbers, `Independent` and `Coupled`. Tests put an enumerator
of all branches in their place (`enumerator.Branches`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import NamedTuple, Protocol

from .law import ZERO, Law, Number
from .rng import WORD, Counter, philox, seed_words, uniform


class Purpose(IntEnum):
    """What a number is drawn for. Numbers of different purposes never share a counter."""

    ACCEPT = 1
    """The test of a drafted token."""
    RESIDUAL = 2
    """A token from what rejected drafts have left of the target's law."""
    TARGET = 3
    """A token from the target's own law."""
    DRAFT = 4
    """A token from a draft law."""


# Purpose word of `Coupled`, whose counters must differ from all of `Independent`'s.
COUPLED = 5


class Draw(NamedTuple):
    """One draw within a step: what for, at which node (None: the context), the how-manieth."""

    purpose: Purpose
    node: int | None
    draw: int = 0


class Draws(Protocol):
    """Tokens drawn from laws: all the randomness of drafters and of sample-and-match."""

    def draw(self, at: Draw, position: int, law: Law) -> int:
        """A token drawn from `law`; `position` is its absolute index in prompt + output."""
        ...


class Chances(Draws, Protocol):
    """Draws and tests, all independent of each other: the randomness of rejection verifiers.

    `Coupled` is no `Chances` on purpose: a residual drawn with the noise that the draft has used
    is biased, so the two families must not meet.
    """

    def accept(self, at: Draw, p: Number, q: Number) -> bool:
        """True with probability min(1, p / q); never where p is 0."""
        ...


@dataclass(frozen=True)
class Independent:
    """Numbers for the rejection family, one for each (committed length, purpose, node, draw).

    The committed length (tokens of prompt + output at the start of the step) grows with every
    step, so no counter is used twice. Keyed by position it would be, after a rejection, and
    verifiers that decide from the leaf upwards would be biased.
    """

    seed: int
    committed: int
    sample: int = 0

    def counter(self, at: Draw) -> Counter:
        """The Philox counter of a draw; distinct for distinct (sample, committed, draw)."""
        node = 0 if at.node is None else at.node + 1
        return at.purpose << 24 | at.draw, node, self.committed % WORD, self.sample

    def number(self, at: Draw) -> float:
        """The number of a draw, in (0, 1)."""
        low, high, _, _ = philox(self.counter(at), seed_words(self.seed))
        return uniform(low, high)

    def accept(self, at: Draw, p: Number, q: Number) -> bool:
        """The ratio test, without a division: u * q < p. Strict, so that p = 0 never passes."""
        return Fraction(self.number(at)) * q < p

    def draw(self, at: Draw, position: int, law: Law) -> int:  # noqa: ARG002 - part of `Draws`
        """The token at quantile u of `law`."""
        return invert(self.number(at), law)


def invert(u: float, law: Law) -> int:
    """The token at quantile `u` in (0, 1) of `law` (shape V).

    The first whose cumulated mass exceeds u; never one of probability 0, also where rounding
    leaves all of the mass under u.
    """
    mass: Number = ZERO
    possible = [token for token, p in enumerate(law) if p > 0]
    for token in possible:
        mass += law[token]
        if Fraction(u) < mass:
            return token
    return possible[-1]


@dataclass(frozen=True)
class Coupled:
    """Drafter-invariant noise, keyed by (absolute position, token).

    Draft, target and later steps see the same noise, so a seeded text is a function of the
    target's laws alone (Daliri, Musco, Suresh, arXiv:2408.07978).
    """

    seed: int
    sample: int = 0

    def counter(self, position: int, pair: int) -> Counter:
        """The Philox counter of the tokens 2 * pair and 2 * pair + 1 at `position`."""
        return COUPLED << 24 | pair, position % WORD, position // WORD, self.sample

    def noise(self, position: int, token: int) -> float:
        """The number of (position, token), in (0, 1)."""
        words = philox(self.counter(position, token // 2), seed_words(self.seed))
        return uniform(*words[:2]) if token % 2 == 0 else uniform(*words[2:])

    def ranking(self, position: int, law: Law) -> list[int]:
        """The possible tokens of `law` in the order in which they finish an exponential race.

        Token x arrives at time -ln(noise) / law(x). The first one has law `law` (it is the arg
        max of log law + Gumbel noise); the first k are k draws without replacement, in order.
        """
        arrival = {
            token: -math.log(self.noise(position, token)) / p
            for token, p in enumerate(law)
            if p > 0
        }
        return sorted(arrival, key=lambda token: (arrival[token], token))

    def draw(self, at: Draw, position: int, law: Law) -> int:  # noqa: ARG002 - part of `Draws`
        """The winner of the race at `position`."""
        return self.ranking(position, law)[0]
