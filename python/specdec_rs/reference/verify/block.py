"""Block verification: the longest prefix of a chain by its joint ratio.

Sun et al., arXiv:2403.10444.

**Theorem.** Let x_1 .. x_k be drawn, x_i from q_i given those before. P_0 = 1,
P_i = min(P_(i-1) * p_i(x_i) / q_i(x_i), 1); R_i = sum over x of (P_i * p_(i+1)(x) - q_(i+1)(x))+;
h_k = P_k and h_i = R_i / (R_i + 1 - P_i) for i < k. Accept the first t tokens, t the largest i
with u_i < h_i (u_i independent and uniform, h_0 = 1), then emit y from p_(k+1) if t = k, else from
norm((P_t * p_(t+1) - q_(t+1))+). The emitted tokens have the target's law, and no verifier that
sees one path accepts more of it on average.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..chances import Chances, Draw, Purpose
from ..law import ONE, Law, Number, normalise, surplus
from .outcome import Outcome


def verify_chain(
    p: Sequence[Law], q: Sequence[Law], tokens: Sequence[int], position: int, chances: Chances
) -> Outcome:
    """Accepts the longest prefix whose joint test passes.

    Args:
        p: target laws, shape (k + 1, V).
        q: laws that the tokens were drawn from, shape (k, V).
        tokens: the draft, shape (k,).
        position: committed length, the absolute index of the first token emitted.
        chances: the randomness; token i (from 0) is tested as node i.
    """
    k = len(tokens)
    ratio = joint_ratios(p, q, tokens)
    t = k
    while t > 0:
        h = ratio[k] if t == k else accept_probability(ratio[t], p[t], q[t])
        if chances.accept(Draw(Purpose.ACCEPT, t - 1), h, ONE):
            break
        t -= 1
    law, purpose = p[t], Purpose.TARGET
    if t < k:
        left, mass = surplus(p[t], q[t], ratio[t])
        # No surplus: only rounding leads here, p itself is right.
        if mass > 0:
            law, purpose = normalise(left), Purpose.RESIDUAL
    y = chances.draw(Draw(purpose, t - 1 if t else None), position + t, law)
    return Outcome(tuple(range(t)), y)


def joint_ratios(p: Sequence[Law], q: Sequence[Law], tokens: Sequence[int]) -> list[Number]:
    """P_0 .. P_k (shape k + 1), each in [0, 1]."""
    ratio: list[Number] = [ONE]
    for i, x in enumerate(tokens):
        ratio.append(min(ratio[i] * p[i][x] / q[i][x], ONE))
    return ratio


def accept_probability(ratio: Number, p: Law, q: Law) -> Number:
    """h_i from P_i and the laws (shape V) of the token after it; 1 where 0 / 0."""
    _, mass = surplus(p, q, ratio)
    room = mass + 1 - ratio
    return mass / room if room > 0 else ONE
