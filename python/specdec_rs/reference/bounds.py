"""How much of a draft can be accepted: one node with target law p and draft law q (shapes V)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import combinations, permutations

from .law import ONE, ZERO, Law, Number, total, without

AllIn = Callable[[Collection[int]], Number]
"""The probability that all drafts of a node fall into a set of tokens."""


def chain_acceptance(p: Law, q: Law) -> Number:
    """Ratio test, one draft: sum min(p, q) = 1 - TV(p, q), the most that any rule accepts."""
    return total(min(a, b) for a, b in zip(p, q, strict=True))


def matching_acceptance(p: Law, q: Law) -> Number:
    """Sample and match with independent draws: sum p * q."""
    return total(a * b for a, b in zip(p, q, strict=True))


def coupled_acceptance(p: Law, q: Law) -> Number:
    """Sample and match with the same noise, at least (1 - TV) / (1 + TV).

    The sum over x of 1 / (sum over y of max(p(y) / p(x), q(y) / q(x))): x wins both races iff it
    arrives before every y at the larger of the two ratios (Daliri, Musco, Suresh,
    arXiv:2408.07978).
    """
    pairs = list(zip(p, q, strict=True))
    return total(
        1 / total(max(a / px, b / qx) for a, b in pairs) for px, qx in pairs if px * qx > 0
    )


def independent_drafts(q: Law, k: int) -> AllIn:
    """For k drafts drawn independently from `q`."""
    return lambda tokens: total(q[x] for x in tokens) ** k


def drafts_without_replacement(q: Law, k: int) -> AllIn:
    """For k drafts drawn from `q` without replacement, or all of its tokens. Toys only."""
    size = min(k, sum(x > 0 for x in q))

    def all_in(tokens: Collection[int]) -> Number:
        orders = permutations(sorted(tokens), size)
        return total(_order_probability(q, order) for order in orders)

    return all_in


def _order_probability(q: Law, order: tuple[int, ...]) -> Number:
    probability: Number = ONE
    for i, x in enumerate(order):
        left = without(q, order[:i])
        if left is None:
            return ZERO
        probability *= left[x]
    return probability


def best_acceptance(p: Law, all_in: AllIn) -> Number:
    """The most that any exact rule can accept, over all sets of tokens. Toys only: 2^V sets.

    min over sets S of 1 + p(S) - P(all drafts in S): max-flow and min-cut between drafts and the
    emitted token (optimal transport, Hu et al., arXiv:2502.18779).
    """
    tokens = range(len(p))
    sets = (s for size in range(len(p) + 1) for s in combinations(tokens, size))
    return min(1 + total(p[x] for x in s) - all_in(s) for s in sets)


def best_acceptance_independent(p: Law, q: Law, k: int) -> Number:
    """`best_acceptance` for k independent drafts, from the V + 1 sets that can be the least.

    q(S)^k is convex in q(S), so p(S) - q(S)^k is least at a set {x: p(x) < c * q(x)} for some c.
    """
    possible = [x for x in range(len(q)) if q[x] > 0]
    possible.sort(key=lambda x: p[x] / q[x])
    sets = [possible[:size] for size in range(len(possible) + 1)]
    return min(1 + total(p[x] for x in s) - total(q[x] for x in s) ** k for s in sets)
