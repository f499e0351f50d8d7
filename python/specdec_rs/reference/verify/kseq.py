"""k-SEQ: one test for k independent drafts of the same token.

SpecTr, Sun et al., arXiv:2310.15141.

**Theorem.** Let x_1 .. x_k be drawn independently from q. Accept the first x_i with
u_i * rho * q(x_i) < p(x_i). With b = sum over x of min(q(x), p(x) / rho) one draft is accepted with
probability b, and some draft with probability A = 1 - (1 - b)^k; if none is, emit
y ~ norm(p - min(q, p / rho) * A / b). The token has law p for every rho with A <= rho * b, and
A is largest at the least such rho, where A = rho * b. A is within 1 - 1/e of the best possible.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..chances import Chances, Draw, Purpose
from ..law import ZERO, Law, Number, normalise, total

# At the best rho, found by bisection, some weights are 0 up to this.
ROUNDING = 1e-12


def choose(
    p: Law, q: Law, drafts: Sequence[int], rho: Number, *, position: int, chances: Chances
) -> tuple[int | None, int]:
    """The index of the accepted draft (None: none is), and the emitted token.

    Args:
        p: target law, shape V.
        q: law of each draft, shape V.
        drafts: k tokens, drawn independently from `q`.
        rho: at least `best_rho(p, q, k)`, which lies in [1, k].
        position: absolute index of the token.
        chances: the randomness; draft i is tested as node i.
    """
    for i, x in enumerate(drafts):
        if chances.accept(Draw(Purpose.ACCEPT, i), p[x], rho * q[x]):
            return i, x
    law = residual(p, q, len(drafts), rho)
    return None, chances.draw(Draw(Purpose.RESIDUAL, None), position, law)


def beta(p: Law, q: Law, rho: Number) -> Number:
    """Probability that one draft is accepted."""
    return total(min(b, a / rho) for a, b in zip(p, q, strict=True))


def acceptance(p: Law, q: Law, k: int, rho: Number) -> Number:
    """Probability that one of k drafts is accepted."""
    return 1 - (1 - beta(p, q, rho)) ** k


def residual(p: Law, q: Law, k: int, rho: Number) -> Law:
    """The law (shape V) of the token if no draft is accepted; `p` where that cannot happen.

    Raises:
        ValueError: `rho` is under `best_rho`: no law makes up for what was accepted.
    """
    b = beta(p, q, rho)
    # A / b, which has a limit at b = 0.
    tries = total((1 - b) ** i for i in range(k))
    left = [x - min(y, x / rho) * tries for x, y in zip(p, q, strict=True)]
    if min(left) < -ROUNDING:
        raise ValueError(f"rho is {rho}, too small for {k} drafts; see best_rho")
    left = [max(x, ZERO) for x in left]
    return normalise(left) if any(left) else p


def best_rho(p: Law, q: Law, k: int) -> float:
    """The least rho with 1 - (1 - b(rho))^k <= rho * b(rho), by bisection in [1, k].

    If p and q are disjoint every rho does, as nothing is ever accepted: 1.
    """
    low, high = 1.0, float(k)
    while low < (middle := (low + high) / 2) < high:
        if acceptance(p, q, k, middle) <= middle * beta(p, q, middle):
            high = middle
        else:
            low = middle
    return high
