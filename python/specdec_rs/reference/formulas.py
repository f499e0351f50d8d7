"""What speculation gains, from the acceptance rate and the costs.

Leviathan et al., arXiv:2211.17192, with a verify cost that grows with the width. Their alpha is
the probability that a drafted token is accepted, the same and independent at each place; gamma is
the number of drafted tokens in a step. The formulas are lower bounds for `block`.
"""

from __future__ import annotations

from collections.abc import Callable

from .law import Number, total


def expected_tokens(alpha: Number, gamma: int) -> Number:
    """Tokens per step, the one after the draft included: (1 - alpha^(gamma+1)) / (1 - alpha).

    Written as the sum 1 + alpha + .. + alpha^gamma, which holds at alpha = 1 too.

    Raises:
        ValueError: alpha outside [0, 1], gamma negative.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is {alpha}, expected a probability")
    if gamma < 0:
        raise ValueError(f"gamma is {gamma}, expected a number of tokens")
    return total(alpha**i for i in range(gamma + 1))


def speedup(
    alpha: Number,
    gamma: int,
    draft_cost: Number,
    verify_cost: Callable[[int], Number] = lambda _rows: 1,
) -> Number:
    """Tokens per unit of time over those of plain decoding.

    Args:
        alpha: acceptance rate, 0 to 1.
        gamma: drafted tokens in a step.
        draft_cost: time of one draft step over that of a target step of one row.
        verify_cost: time of a target step, in any unit, for a number of rows. The textbook takes
            it for constant; on a CPU it is not.
    """
    steps = gamma * draft_cost + verify_cost(gamma + 1) / verify_cost(1)
    return expected_tokens(alpha, gamma) / steps


def best_gamma(
    alpha: Number,
    draft_cost: Number,
    verify_cost: Callable[[int], Number] = lambda _rows: 1,
    most: int = 64,
) -> int:
    """The gamma in 0..most with the largest speed-up, the least one on ties; 0: do not draft."""
    return max(
        range(most + 1),
        key=lambda gamma: (speedup(alpha, gamma, draft_cost, verify_cost), -gamma),
    )


def operation_factor(alpha: Number, gamma: int, draft_operations: Number) -> Number:
    """Arithmetic over that of plain decoding.

    `draft_operations` is the arithmetic of one draft step over that of one target row.
    """
    return (gamma * draft_operations + gamma + 1) / expected_tokens(alpha, gamma)
