"""When a measured ratio decides a bar."""

from __future__ import annotations

import pytest
from benches.peers.verdict import Interval, decide


def spread(middle: float, width: float = 0.1, count: int = 15) -> list[float]:
    return [middle + width * (i / (count - 1) - 0.5) for i in range(count)]


def test_the_interval_holds_the_median_and_not_the_extremes() -> None:
    values = spread(1.0)
    found = Interval.of(values)
    assert found.median == pytest.approx(1.0)
    assert min(values) < found.low < 1.0 < found.high < max(values)
    assert Interval.of(values) == found
    assert Interval.of([2.0] * 15) == Interval(2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("values", "bar", "sense", "drift", "verdict"),
    [
        (spread(1.1), 1.0, ">=", 0.05, "met"),
        (spread(0.9), 1.0, ">=", 0.05, "not met"),
        (spread(1.0), 1.0, ">=", 0.05, "undecided"),
        (spread(1.1), 1.0, "<=", 0.05, "not met"),
        (spread(0.9), 1.0, "<=", 0.05, "met"),
        (spread(1.0), 1.0, "<=", 0.05, "undecided"),
        ([1.0] * 15, 1.0, ">=", 0.05, "met"),
        ([1.0] * 15, 1.0, "<=", 0.05, "met"),
        (spread(1.1, count=14), 1.0, ">=", 0.05, "undecided"),
        (spread(1.1), 1.0, ">=", 0.11, "void"),
        ([1.1], 1.0, ">=", None, "met"),
        ([1.1], 1.0, "<=", None, "not met"),
    ],
)
def test_verdicts(
    values: list[float], bar: float, sense: str, drift: float | None, verdict: str
) -> None:
    assert decide(values, bar, sense, drift) == verdict  # type: ignore[arg-type]
