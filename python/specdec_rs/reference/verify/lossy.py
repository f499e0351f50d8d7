"""LOSSY: typical acceptance (Medusa, arXiv:2401.10774). It does not keep the target's law."""

from __future__ import annotations

import math

from ..law import Law

# What Medusa's code adds to p inside the logarithm.
_SMALL = 1e-5


def typical_threshold(p: Law, epsilon: float = 0.09, delta: float = 0.3) -> float:
    """The probability that a drafted token must exceed: min(epsilon, delta * exp(-H(p))).

    Args:
        p: target law, shape V.
        epsilon: the threshold of a peaked law.
        delta: what shrinks with the entropy H (in nats); the defaults are those of Medusa's code,
            its paper has delta = sqrt(epsilon).
    """
    entropy = -sum(float(x) * math.log(float(x) + _SMALL) for x in p)
    return min(epsilon, delta * math.exp(-entropy))
