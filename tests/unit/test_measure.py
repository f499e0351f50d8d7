"""`width_costs`: the cost of a pass by its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import specdec_rs as sd
from specdec_rs import _core


def test_every_width_has_its_cost(tiny: Path) -> None:
    costs = _core.width_costs(tiny, context=8, widest=4, repeats=3, num_threads=1)
    assert [cost["rows"] for cost in costs] == [1, 2, 3, 4]
    assert all(0 < cost["least_ms"] <= cost["ms"] for cost in costs)


@pytest.mark.parametrize(
    "sizes",
    [
        {"context": 8, "widest": 0, "repeats": 1},
        {"context": 8, "widest": 1, "repeats": 0},
        {"context": 10**6, "widest": 1, "repeats": 1},
    ],
)
def test_sizes_that_do_not_fit(tiny: Path, sizes: dict[str, int]) -> None:
    with pytest.raises(sd.ConfigError, match="context is"):
        _core.width_costs(tiny, **sizes)
