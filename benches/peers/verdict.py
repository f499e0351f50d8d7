"""When a measured ratio decides: the bootstrap interval of its median."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["met", "not met", "undecided", "void"]

# Below this many pairs an interval is too wide to trust its ends.
LEAST_PAIRS = 15
LEVEL = 0.90
DRAWS = 4000
# A run in which the machine's read bandwidth moved by more says nothing.
MOST_DRIFT = 0.10


@dataclass(frozen=True)
class Interval:
    """The median of a sample and the ends of its 90 % bootstrap interval."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """Percentile bootstrap with fixed numbers, so that the same sample gives the same ends."""
        numbers = random.Random(0)  # noqa: S311 - statistics, not secrets
        medians = sorted(
            statistics.median(numbers.choices(values, k=len(values))) for _ in range(DRAWS)
        )
        tail = round(DRAWS * (1 - LEVEL) / 2)
        return cls(statistics.median(values), medians[tail], medians[DRAWS - 1 - tail])


def decide(
    values: Sequence[float], bar: float, sense: Literal[">=", "<="], drift: float | None
) -> Verdict:
    """Whether the median of paired `values` keeps the bar.

    Met if the whole interval does, not met if none of it does. Without a `drift` the values are
    no times: they do not scatter, and one is enough.
    """
    if drift is not None and drift > MOST_DRIFT:
        return "void"
    if drift is not None and len(values) < LEAST_PAIRS:
        return "undecided"
    found = Interval.of(values)
    if sense == "<=":
        found = Interval(-found.median, -found.high, -found.low)
        bar = -bar
    if found.low >= bar:
        return "met"
    return "not met" if found.high < bar else "undecided"
