"""`pass_costs`, `machine_rates` and `specdec bench kernels`: shapes, not times."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import specdec_rs as sd
from specdec_rs import _core
from specdec_rs.cli.bench.chart import Line, chart, nice
from specdec_rs.cli.bench.kernels import drift, summarise
from tests.scripts import specdec


def test_every_width_has_its_cost(tiny: Path) -> None:
    heard: list[tuple[int, int]] = []
    costs = _core.pass_costs(
        tiny,
        context=8,
        widest=5,
        repeats=3,
        num_threads=1,
        level="scalar",
        progress=lambda done, total: heard.append((done, total)),
    )
    assert (costs["threads"], costs["level"], len(costs["rounds"])) == (1, "scalar", 3)
    for one in costs["rounds"]:
        assert len(one["ms"]) == 5
        assert len(one["read"]) == 2
        assert all(x > 0 for x in (*one["ms"], *one["read"], one["multiply"]))
    # Two layers of width 64 with 2 of 4 heads for keys, 128 in between, 300 tokens padded to 304.
    layer = 64 * (2 * 64 + 2 * 32 + 3 * 128)
    assert costs["macs_per_row"] == 2 * layer + 64 * 300
    norms = 5 * 64
    assert costs["weight_bytes"] == 4 * (2 * layer + 64 * 304 + norms)
    assert costs["kv_bytes"] == 8 * 2 * 2 * 32 * 2
    assert heard[-1][1] in {0, 3}


@pytest.mark.parametrize(("context", "widest", "repeats"), [(8, 0, 1), (8, 1, 0), (10**6, 1, 1)])
def test_sizes_that_do_not_fit(tiny: Path, context: int, widest: int, repeats: int) -> None:
    with pytest.raises(sd.ConfigError, match="context is"):
        _core.pass_costs(tiny, context=context, widest=widest, repeats=repeats)


def test_a_level_that_does_not_exist(tiny: Path) -> None:
    with pytest.raises(sd.ConfigError, match="scalar, avx2 or avx512"):
        _core.pass_costs(tiny, context=8, widest=1, repeats=1, level="sse")
    with pytest.raises(sd.ConfigError, match="level"):
        _core.machine_rates(level="")


def test_the_machine_has_rates() -> None:
    assert all(rate > 0 for rate in _core.machine_rates(num_threads=1, level="scalar"))


def test_the_roof_is_the_larger_of_two_times() -> None:
    one = {"read": [2e9, 2e9], "multiply": 1e9, "ms": [600.0, 900.0, 3000.0]}
    other = {"read": [2e9], "multiply": 1e9, "ms": [500.0, 1000.0, 3000.0]}
    costs = {
        "weight_bytes": 900_000_000,
        "kv_bytes": 100_000_000,
        "macs_per_row": 500_000_000,
        "threads": 2,
        "level": "avx2",
        "rounds": [one, other, one],
    }
    report = summarise("m", 7, costs)  # type: ignore[arg-type]
    assert [width["rows"] for width in report["widths"]] == [1, 2, 3]
    assert [width["ms"] for width in report["widths"]] == [600.0, 900.0, 3000.0]
    assert [width["roof_ms"] for width in report["widths"]] == [500.0, 1000.0, 1500.0]
    assert [width["ratio"] for width in report["widths"]] == [1.0, 1.5, 5.0]
    assert report["widths"][2]["over_roof"] == 2.0
    assert report["valid"]


def test_a_drift_is_seen_and_a_stray_sample_is_not() -> None:
    assert drift([10.0]) == 0
    assert drift([10.0] * 17 + [2.0] + [10.0] * 18) == 0
    assert drift([10.0] * 18 + [12.0] * 18) == pytest.approx(0.2)


def test_the_command_prints_one_document_and_draws(tiny: Path, tmp_path: Path) -> None:
    picture = tmp_path / "t.svg"
    sizes = ["--context", "4", "--widest", "3", "--repeats", "2", "--num-threads", "1"]
    command = ["bench", "kernels", str(tiny), *sizes]
    done = specdec(*command, "--json", "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [width["rows"] for width in report["widths"]] == [1, 2, 3]
    assert all(width["ms"] > 0 for width in report["widths"])
    assert report["rounds"] == 2
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    table = specdec(*command).stdout
    assert "T(w)/T(1)" in table
    assert len(table.splitlines()) == 3 + 3


@pytest.mark.parametrize("option", ["context", "widest", "repeats", "num-threads"])
@pytest.mark.parametrize("value", ["-1", "99999999999999999999"])
def test_a_wrong_number_is_one_line_and_status_2(tiny: Path, option: str, value: str) -> None:
    done = specdec("bench", "kernels", str(tiny), f"--{option}", value)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {option.replace('-', '_')}: found {value} (int)")
    assert done.stderr.count("\n") == 1


def test_a_chart_shows_every_point_and_escapes_names() -> None:
    drawn = chart(title="a < b", x="x", y="y", lines=[Line("n&m", [(1, 2), (2, 7.5)])])
    root = ElementTree.fromstring(drawn)
    circles = [node for node in root if node.tag.endswith("circle")]
    assert len(circles) == 2
    heights = [float(node.attrib["cy"]) for node in circles]
    assert heights[0] > heights[1] > 0
    assert {"a < b", "n&m"} <= {node.text for node in root}
    assert [nice(x) for x in (0.3, 1, 1.1, 4, 7, 70)] == [0.5, 1, 2, 5, 10, 100]
