"""Ours against llama.cpp in one interleaved run, and the verdict on every bar.

    python -m benches.peers.versus --llama "$(benches/peers/llama_cpp.sh FOLDER)" \
        [--llama-avx2 "$(benches/peers/llama_cpp.sh FOLDER avx2)"] [--cell decode ..] [--json FILE]

From the repository's root, with the package installed. A bar is met or not met when the 90 %
bootstrap interval of the median paired ratio lies on one side of it, with 15 pairs or more; else it
is undecided. A cell in which the read bandwidth moved by more than 10 % is void.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from benches.peers import cells
from benches.peers.cells import Cell, Setting, document
from benches.peers.llama import Llama

from specdec_rs.models import resolve

CELLS = ("decode", "prefill", "widths", "busy", "avx2", "memory")
TARGET = "qwen2.5-coder-1.5b"
OTHERS = ("qwen2.5-coder-0.5b", "smollm2-135m")


def main() -> None:
    """Run the cells that were asked for, one after the other."""
    options = _options()
    reports = []
    for name, cell in _chosen(options):
        _say(f"--- {name}")
        report = {"model": name.split()[-1], **cell().report()}
        reports.append(report)
        _show(name, report)
        # After every cell, so that an interrupted run keeps what it has.
        if options.json is not None:
            options.json.write_text(document(reports), encoding="utf-8")


def _chosen(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Cell]]]:
    for name in options.model:
        path = resolve(name)
        setting = Setting(
            path,
            Llama(options.llama, path, options.threads),
            options.threads,
            options.pairs,
            _say,
            peer_widths=options.widths,
        )
        target = name not in OTHERS
        runs = _all_models(setting, target=target)
        if target:
            runs |= _target_only(setting, options.llama_avx2)
        for cell in options.cell:
            if cell in runs:
                yield f"{cell} {name}", runs[cell]


def _all_models(setting: Setting, *, target: bool) -> dict[str, Callable[[], Cell]]:
    """The cells of every model, with the project's bars."""
    steps = {4: 1.25, 8: 1.7} if target else {4: 1.35, 8: 1.9}
    return {
        "decode": lambda: cells.decode(setting, 1.0, 0.85 if target else None),
        "prefill": lambda: cells.prefill(setting, 1.0),
        "widths": lambda: cells.widths(setting, 1.25 if target else None, steps),
    }


def _target_only(setting: Setting, avx2: Path | None) -> dict[str, Callable[[], Cell]]:
    """The cells that only a target has."""
    found: dict[str, Callable[[], Cell]] = {
        "busy": lambda: cells.busy(setting, 0.45),
        "memory": lambda: cells.memory(setting, 1.15),
    }
    if avx2 is None:
        _say("avx2 is left out: no --llama-avx2")
        return found
    peer = replace(setting.llama, programs=avx2)
    forced = replace(setting, llama=peer, level="avx2")
    found["avx2"] = lambda: replace(cells.decode(forced, 0.9, None), name="avx2")
    return found


def _show(name: str, report: dict[str, Any]) -> None:
    print(name)
    if report["read_drift"] is not None:
        read, moved = report["read_bytes_per_second"], report["read_drift"]
        print(f"  B {read / 1e9:.1f} GB/s, moved {moved:.0%}")
    for line in report["lines"]:
        bar = "" if line["bar"] is None else f"  bar {line['sense']} {line['bar']:g}"
        print(
            f"  {line['measure']:28} {line['median']:6.3f} "
            f"[{line['low']:.3f}, {line['high']:.3f}]{bar}  {line['verdict'] or ''}"
        )
    if "llama.cpp" in report:
        peer = {one["rows"]: one["ms"] for one in report["llama.cpp"]}
        print("  rows      ours  x T(1)   llama.cpp  x T(1)      roof")
        for one in report["ours"]["widths"]:
            theirs = peer.get(one["rows"])
            other = f"{theirs:8.2f} ms {theirs / peer[1]:7.2f}" if theirs else " " * 19
            print(
                f"  {one['rows']:4} {one['ms']:7.2f} ms {one['ratio']:6.2f} {other} "
                f"{one['roof_ms']:7.2f} ms"
            )
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llama", type=Path, required=True, help="folder of its programs")
    parser.add_argument("--llama-avx2", type=Path, help="the same, built for AVX2")
    parser.add_argument(
        "--model",
        nargs="+",
        default=[TARGET, *OTHERS],
        help=f"names or files; all but {' and '.join(OTHERS)} have the target's bars",
    )
    parser.add_argument("--cell", nargs="+", choices=CELLS, default=CELLS)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--widths",
        type=lambda text: sorted({1, *map(int, text.split(","))}),
        default=list(range(1, 17)),
        help="rows at which llama.cpp is measured, 1,4,8 for example",
    )
    parser.add_argument("--json", type=Path, help="file for all numbers")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
