"""`specdec bench kernels`: T(w), the time of a pass of w rows, beside the least it could take."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from specdec_rs import _checks as check
from specdec_rs import _core
from specdec_rs.cli import _options as options
from specdec_rs.cli import _show
from specdec_rs.cli.bench.chart import Line, chart
from specdec_rs.errors import SpecdecError
from specdec_rs.models import resolve
from specdec_rs.progress import to_stderr

if TYPE_CHECKING:
    from specdec_rs._core import _PassCosts

# A run in which the machine's read bandwidth moved by more says nothing.
MOST_DRIFT = 0.10
# The engine's own limits, and days of measuring.
MOST_ROWS, MOST_THREADS, MOST_ROUNDS = 64, 1024, 100_000


class Width(TypedDict):
    """A row of the table."""

    rows: int
    ms: float
    least_ms: float
    ratio: float
    roof_ms: float
    over_roof: float


class Report(TypedDict):
    """The document that `--json` prints; rates per second, times in milliseconds."""

    model: str
    level: str
    threads: int
    context: int
    rounds: int
    weight_bytes: int
    kv_bytes: int
    macs_per_row: int
    read_bytes_per_second: float
    read_drift: float
    macs_per_second: float
    valid: bool
    widths: list[Width]


def run(
    model: Annotated[str, typer.Argument(help="Catalogue name, file, folder or hub id.")],
    context: Annotated[int, typer.Option(help="Positions in the cache before a pass.")] = 256,
    widest: Annotated[int, typer.Option(help="Most rows of a pass.")] = 16,
    repeats: Annotated[int, typer.Option(help="Rounds; each times every width once.")] = 15,
    num_threads: options.Threads = None,
    level: Annotated[
        str | None, typer.Option(help="Instructions: scalar, avx2, avx512; the best if left out.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the times as SVG into this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help=_show.JSON_HELP)] = False,
) -> None:
    """Time passes of 1 to 16 rows with logits on every row, and what the machine could do at most.

    The roof of w rows is max(bytes / B, w * MAC / R): bytes that a pass reads, products of a row,
    read bandwidth B, rate R of the machine's byte-product instruction. B and R are measured in
    turns with the passes. If B moves by more than 10 % within the run, the run is void.

    T(w) is the median over the rounds; T(w)/T(1) is the median of the ratios within each round, not
    the quotient of two medians.
    """
    context = check.integer("context", context, 0, check.U32_MAX)
    widest = check.integer("widest", widest, 1, MOST_ROWS)
    repeats = check.integer("repeats", repeats, 1, MOST_ROUNDS)
    if num_threads is not None:
        num_threads = check.integer("num_threads", num_threads, 1, MOST_THREADS)
    path = resolve(model, progress=to_stderr())
    with _rounds(f"timing {path.name}") as progress:
        costs = _core.pass_costs(
            path,
            context=context,
            widest=widest,
            repeats=repeats,
            num_threads=num_threads,
            level=level,
            progress=progress,
        )
    report = summarise(model, context, costs)
    if plot is not None:
        _draw(report, plot)
    if json:
        _show.document(report)
    else:
        _print(report)
    if not report["valid"]:
        _show.remark(
            f"void: the read bandwidth moved by {report['read_drift']:.0%}, more than "
            f"{MOST_DRIFT:.0%}; run it again on a quiet machine"
        )


def summarise(model: str, context: int, costs: _PassCosts) -> Report:
    """Medians over the rounds; `ratio` is the median of T(w) / T(1) within a round."""
    rounds = costs["rounds"]
    reads = [rate for one in rounds for rate in one["read"]]
    bandwidth = statistics.median(reads)
    rate = statistics.median(one["multiply"] for one in rounds)
    size = costs["weight_bytes"] + costs["kv_bytes"]

    def width(index: int) -> Width:
        times = [one["ms"][index] for one in rounds]
        ms = statistics.median(times)
        roof = 1e3 * max(size / bandwidth, (index + 1) * costs["macs_per_row"] / rate)
        return {
            "rows": index + 1,
            "ms": ms,
            "least_ms": min(times),
            "ratio": statistics.median(one["ms"][index] / one["ms"][0] for one in rounds),
            "roof_ms": roof,
            "over_roof": ms / roof,
        }

    moved = drift(reads)
    return {
        "model": model,
        "level": costs["level"],
        "threads": costs["threads"],
        "context": context,
        "rounds": len(rounds),
        "weight_bytes": costs["weight_bytes"],
        "kv_bytes": costs["kv_bytes"],
        "macs_per_row": costs["macs_per_row"],
        "read_bytes_per_second": bandwidth,
        "read_drift": moved,
        "macs_per_second": rate,
        "valid": moved <= MOST_DRIFT,
        "widths": [width(index) for index in range(len(rounds[0]["ms"]))],
    }


def drift(samples: Sequence[float], parts: int = 4) -> float:
    """How far a rate moved in a run, 0.1 for 10 %.

    The run is cut into `parts` of equal length; what counts is the largest of their medians over
    the least. Single samples say nothing: one interrupt spoils one.
    """
    count = min(parts, len(samples))
    cuts = [len(samples) * i // count for i in range(count + 1)]
    medians = [statistics.median(samples[low:high]) for low, high in pairwise(cuts)]
    return max(medians) / min(medians) - 1


def _print(report: Report) -> None:
    typer.echo(
        f"{report['model']}: {report['threads']} threads, {report['level']}, "
        f"{report['context']} positions of context, {report['rounds']} rounds"
    )
    size = report["weight_bytes"] + report["kv_bytes"]
    typer.echo(
        f"a pass reads {size / 1e6:.1f} MB at B = {report['read_bytes_per_second'] / 1e9:.1f} GB/s "
        f"(moved {report['read_drift']:.0%}), a row makes {report['macs_per_row'] / 1e6:.0f} M "
        f"products at R = {report['macs_per_second'] / 1e9:.0f} G/s"
    )
    typer.echo("rows      T(w)   T(w)/T(1)      roof   T(w)/roof")
    for width in report["widths"]:
        typer.echo(
            f"{width['rows']:4}  {width['ms']:7.2f} ms  {width['ratio']:7.2f}  "
            f"{width['roof_ms']:7.2f} ms  {width['over_roof']:7.2f}"
        )


def _draw(report: Report, file: Path) -> None:
    widths = report["widths"]
    picture = chart(
        title=f"{Path(report['model']).name}: time of a pass by its rows",
        x="rows of a pass",
        y="ms",
        lines=[
            Line("T(w)", [(width["rows"], width["ms"]) for width in widths]),
            Line("roof", [(width["rows"], width["roof_ms"]) for width in widths], dashed=True),
        ],
    )
    try:
        file.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise SpecdecError(f"the plot could not be written to {file}: {error}") from error


@contextmanager
def _rounds(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; nothing where there is none, as the work takes seconds."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
