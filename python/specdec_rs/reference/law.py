"""Laws: the distribution of the next token, and the cuts that samplers make in one.

A law is a sequence of V probabilities, one for each token id, that sum to 1. Its numbers are
fractions (then every result is exact) or floats; functions take both and never mix them up:
0 and 1 are always written as fractions, which turn into floats when they meet one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

Number = Fraction | float
Law = Sequence[Number]

ZERO, ONE = Fraction(0), Fraction(1)

# A row of 150,000 probabilities in half precision sums to 1 within about 1e-3.
ROUNDING = 1e-3


def total(numbers: Iterable[Number]) -> Number:
    """The sum, exact for fractions."""
    result: Number = ZERO
    for number in numbers:
        result += number
    return result


def exact(weights: Sequence[int | Fraction]) -> tuple[Fraction, ...]:
    """The law with probabilities proportional to `weights` (shape V), as fractions.

    Raises:
        ValueError: a negative weight, or no positive one.
    """
    return tuple(Fraction(w) for w in normalise([Fraction(w) for w in weights]))


def normalise(weights: Law) -> tuple[Number, ...]:
    """`weights` (shape V) divided by their sum.

    Raises:
        ValueError: a weight that is NaN, infinite or negative; no positive weight.
    """
    for token, weight in enumerate(weights):
        if not math.isfinite(weight) or weight < 0:
            raise ValueError(f"weight of token {token} is {weight}, expected a finite number >= 0")
    mass = total(weights)
    if mass <= 0:
        raise ValueError(f"none of {len(weights)} tokens is possible; one at least must be")
    return tuple(weight / mass for weight in weights)


def check_law(row: Law, name: str) -> tuple[Number, ...]:
    """`row` (shape V) as a law: what rounding left out of the sum is put right.

    Args:
        row: probabilities; fractions must sum to 1, floats to 1 within `ROUNDING`.
        name: what to call the row in an error.

    Raises:
        ValueError: a number that is NaN, infinite or negative; a sum that is not 1.
    """
    try:
        law = normalise(row)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    mass = total(row)
    allowed = 0 if isinstance(mass, Fraction) else ROUNDING
    if not -allowed <= mass - 1 <= allowed:
        raise ValueError(f"{name}: probabilities sum to {mass}, expected 1; normalise the row")
    return law


def one_hot(token: int, size: int) -> tuple[Fraction, ...]:
    """The law over `size` tokens that always gives `token`."""
    return tuple(ONE if other == token else ZERO for other in range(size))


def without(law: Law, taken: Collection[int]) -> tuple[Number, ...] | None:
    """`law` given that none of `taken` occurs; None if that leaves nothing."""
    left = [ZERO if token in taken else p for token, p in enumerate(law)]
    return normalise(left) if any(left) else None


def surplus(p: Law, q: Law, scale: Number = ONE) -> tuple[list[Number], Number]:
    """(scale * p - q)+ token by token (shape V), and its sum.

    What is left to emit after a draft from `q` was rejected (Leviathan et al.,
    arXiv:2211.17192, with scale 1; Sun et al., arXiv:2403.10444, with the joint ratio as scale).
    """
    left: list[Number] = [max(scale * a - b, ZERO) for a, b in zip(p, q, strict=True)]
    return left, total(left)


def total_variation(p: Law, q: Law) -> Number:
    """Half the sum of |p - q|: the largest difference in the probability of any event."""
    return total(max(a - b, b - a) for a, b in zip(p, q, strict=True)) / 2


def argmax(row: Sequence[Number]) -> int:
    """The token of the largest number; the lowest id on ties."""
    return max(range(len(row)), key=lambda token: (row[token], -token))


def keep_min_p(law: Law, min_p: Number) -> tuple[Number, ...]:
    """`law` without the tokens less likely than `min_p` (0 to 1) times the likeliest one."""
    bound = min_p * max(law)
    return keep(law, {token for token, p in enumerate(law) if p >= bound})


def keep_top_k(law: Law, top_k: int, by: Sequence[Number] | None = None) -> tuple[Number, ...]:
    """`law` without the tokens below the `top_k`-th best; ties with that one stay. 0: all stay.

    Args:
        law: shape V.
        top_k: number of tokens, counted with repetition.
        by: what ranks the tokens (shape V), the law itself if None. Logits rank more finely: two
            of them may differ and still give the same probability.
    """
    ranking = law if by is None else by
    possible = {token for token, p in enumerate(law) if p > 0}
    if not 0 < top_k < len(possible):
        return normalise(law)
    bound = sorted((ranking[token] for token in possible), reverse=True)[top_k - 1]
    return keep(law, {token for token in possible if ranking[token] >= bound})


def keep_top_p(law: Law, top_p: Number) -> tuple[Number, ...]:
    """The shortest prefix of the tokens, likeliest first, whose mass reaches `top_p` (0 to 1).

    Equally likely tokens are taken by rising id; one token always stays (nucleus sampling,
    Holtzman et al., arXiv:1904.09751).
    """
    bound = top_p * total(law)
    mass: Number = ZERO
    kept: set[int] = set()
    for token in sorted(range(len(law)), key=lambda token: (-law[token], token)):
        if kept and mass >= bound:
            break
        kept.add(token)
        mass += law[token]
    return keep(law, kept)


def keep(law: Law, kept: Collection[int]) -> tuple[Number, ...]:
    """`law` given that one of the tokens `kept` occurs.

    Raises:
        ValueError: none of them is possible.
    """
    return normalise([p if token in kept else ZERO for token, p in enumerate(law)])
