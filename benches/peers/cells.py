"""What is compared: one function a cell, each one interleaved run that ends in lines with bars."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from benches.peers.busy import busy_core
from benches.peers.llama import Llama, medians
from benches.peers.ours import ours
from benches.peers.verdict import Interval, decide

from specdec_rs import _core
from specdec_rs.cli.bench.kernels import drift, summarise

# Plain decoding of 128 tokens behind a prompt of 64, a prompt of 512, passes behind 256.
TOKENS, DEPTH, PROMPT, CONTEXT, WIDEST = 128, 64, 512, 256, 16
# What a peer needs for one token on a starved core is not known before; so few of them.
STARVED_TOKENS = 16


@dataclass(frozen=True)
class Setting:
    """What every cell needs to know."""

    model: Path
    llama: Llama
    threads: int
    pairs: int
    say: Callable[[str], None]
    level: str | None = None
    peer_widths: Sequence[int] = tuple(range(1, WIDEST + 1))


@dataclass
class Line:
    """A measured value, held against a bar where it has one."""

    measure: str
    values: list[float]
    bar: float | None = None
    sense: Literal[">=", "<="] = ">="

    def report(self, moved: float | None) -> dict[str, Any]:
        """The line with its interval and its verdict."""
        found = Interval.of(self.values)
        verdict = None
        if self.bar is not None:
            verdict = decide(self.values, self.bar, self.sense, moved)
        return {**asdict(self), **asdict(found), "pairs": len(self.values), "verdict": verdict}


@dataclass
class Cell:
    """A run: its lines, the bandwidths seen meanwhile, and what else a reader wants to see.

    Without bandwidths it has measured no times.
    """

    name: str
    lines: list[Line]
    read: list[float]
    detail: dict[str, Any] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        """The cell as a document."""
        moved = drift(self.read) if self.read else None
        return {
            "cell": self.name,
            "read_bytes_per_second": statistics.median(self.read) if self.read else None,
            "read_drift": moved,
            "lines": [line.report(moved) for line in self.lines],
            **self.detail,
        }


Sides = dict[str, Callable[[], float]]


def interleave(setting: Setting, sides: Sides) -> tuple[dict[str, list[float]], list[float]]:
    """Measure every side once a pair, in this order and in the reverse one by turns (ABBA).

    Returns the values by side, and the read bandwidths, which are measured before each pair.
    """
    values: dict[str, list[float]] = {name: [] for name in sides}
    read = []
    for pair in range(setting.pairs):
        read.append(_core.machine_rates(num_threads=setting.threads, level=setting.level)[0])
        for name in list(sides) if pair % 2 == 0 else list(sides)[::-1]:
            values[name].append(sides[name]())
        now = ", ".join(f"{name} {found[-1]:.1f}" for name, found in values.items())
        setting.say(f"pair {pair + 1} of {setting.pairs}: {now}, {read[-1] / 1e9:.1f} GB/s")
    return values, read


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Pair by pair."""
    return [a / b for a, b in zip(over, under, strict=True)]


def decode(setting: Setting, bar: float, share: float | None) -> Cell:
    """Plain decoding against the peer; with `share`, the bytes read per second against B too."""
    costs = _core.pass_costs(
        setting.model,
        context=DEPTH + TOKENS // 2,
        widest=1,
        repeats=1,
        num_threads=setting.threads,
        level=setting.level,
    )
    size = costs["weight_bytes"] + costs["kv_bytes"]
    with ours(setting.model, setting.threads, setting.level) as mine:
        values, read = interleave(
            setting,
            {
                "ours": lambda: mine.decode(TOKENS, DEPTH),
                "llama.cpp": lambda: setting.llama.decode(TOKENS, DEPTH),
            },
        )
    speed = values["ours"]
    lines = [Line("ours / llama.cpp", ratios(speed, values["llama.cpp"]), bar)]
    if share is not None:
        used = [size * ratio for ratio in ratios(speed, read)]
        lines.append(Line("bytes read / B", used, share))
    return Cell("decode", lines, read, {"tokens_per_second": values, "bytes_per_token": size})


def prefill(setting: Setting, bar: float) -> Cell:
    """Reading a prompt of 512 tokens."""
    with ours(setting.model, setting.threads, setting.level) as mine:
        values, read = interleave(
            setting,
            {
                "ours": lambda: mine.prefill(PROMPT),
                "llama.cpp": lambda: setting.llama.prefill(PROMPT),
            },
        )
    lines = [Line("ours / llama.cpp", ratios(values["ours"], values["llama.cpp"]), bar)]
    return Cell("prefill", lines, read, {"tokens_per_second": values})


def busy(setting: Setting, bar: float) -> Cell:
    """Plain decoding while a foreign process is busy on one core, against an idle machine."""

    def starved(work: Callable[[], float]) -> Callable[[], float]:
        def run() -> float:
            with busy_core():
                return work()

        return run

    with ours(setting.model, setting.threads, setting.level) as mine:
        values, read = interleave(
            setting,
            {
                "idle": lambda: mine.decode(TOKENS // 2, DEPTH),
                "busy": starved(lambda: mine.decode(TOKENS // 2, DEPTH)),
                "llama.cpp busy": starved(lambda: setting.llama.decode(STARVED_TOKENS, DEPTH)),
            },
        )
    lines = [
        Line("busy / idle", ratios(values["busy"], values["idle"]), bar),
        Line("busy: ours / llama.cpp", ratios(values["busy"], values["llama.cpp busy"])),
    ]
    return Cell("busy", lines, read, {"tokens_per_second": values})


def widths(setting: Setting, roof: float | None, steps: dict[int, float]) -> Cell:
    """T(w) for 1 to 16 rows, against the roof and against T(1), beside the peer's.

    Args:
        setting: as for all cells.
        roof: the most that (T(w) - 1.5 ms) / max(bytes / B, w * MAC / R) may be at any w.
        steps: the most that T(w) / T(1) may be, by w.
    """
    mine: list[_core._PassCosts] = []
    peer: list[dict[int, float]] = []
    parts = min(3, setting.pairs)

    def measure() -> None:
        mine.append(
            _core.pass_costs(
                setting.model,
                context=CONTEXT,
                widest=WIDEST,
                repeats=-(-setting.pairs // parts),
                num_threads=setting.threads,
                level=setting.level,
            )
        )

    def compare() -> None:
        peer.append(setting.llama.passes(setting.peer_widths, CONTEXT))

    for part in range(parts):
        for side in (measure, compare) if part % 2 == 0 else (compare, measure):
            side()
        setting.say(f"part {part + 1} of {parts}")
    costs = mine[0]
    for other in mine[1:]:
        costs["rounds"] += other["rounds"]
    rounds = costs["rounds"]
    lines = [
        Line(f"T({w}) / T(1)", [one["ms"][w - 1] / one["ms"][0] for one in rounds], bar, "<=")
        for w, bar in steps.items()
    ]
    if roof is not None:
        size = costs["weight_bytes"] + costs["kv_bytes"]
        for w in range(1, WIDEST + 1):
            over = [
                (one["ms"][w - 1] - 1.5)
                / (1e3 * max(size / statistics.median(one["read"]), w * macs / one["multiply"]))
                for one in rounds
                for macs in [costs["macs_per_row"]]
            ]
            lines.append(Line(f"(T({w}) - 1.5 ms) / roof", over, roof, "<="))
    detail = {
        "ours": summarise(str(setting.model), CONTEXT, costs),
        "llama.cpp": [{"rows": w, "ms": ms} for w, ms in medians(peer).items()],
    }
    return Cell("widths", lines, [rate for one in rounds for rate in one["read"]], detail)


# Printed by a process of its own: what this one holds does not count.
_RESIDENT = """
import json, sys
from pathlib import Path
from benches.peers.ours import ours
with ours(Path(sys.argv[1]), int(sys.argv[2])) as mine:
    status = Path("/proc/self/status").read_text().splitlines()
print(next(line for line in status if line.startswith("VmRSS")).split()[1])
"""


def memory(setting: Setting, bar: float) -> Cell:
    """Resident memory after load and a short answer, over the size of the file.

    The few pages of keys and values that the answer has touched are counted in.
    """
    command = [sys.executable, "-c", _RESIDENT, str(setting.model), str(setting.threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    share = int(done.stdout) * 1024 / setting.model.stat().st_size
    line = Line("resident / file", [share], bar, "<=")
    return Cell("memory", [line], [], {"resident_bytes": int(done.stdout) * 1024})


def document(cells: Sequence[dict[str, Any]]) -> str:
    """All cells as JSON."""
    return json.dumps(cells, indent=2)
