"""`specdec demo`: the same answer twice, plain and speculative, side by side."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import typer

from specdec_rs.cli import _show
from specdec_rs.cli._flat import flat
from specdec_rs.cli._options import Loading, MaxTokens
from specdec_rs.errors import ConfigError, SpecdecError
from specdec_rs.llm import LLM
from specdec_rs.outputs import RequestOutput, SpeculativeDecodingStats
from specdec_rs.params import SamplingParams

# Copy editing, the kind of work that prompt lookup is made for: most of the answer stands in the
# prompt. On free prose it finds little and gains little.
PROMPT = (
    "Correct the spelling of this text and write out the whole text:\n\n"
    "The lighthouse stands on a small rock two miles from the shore. It was built in 1867 by a "
    "company of fishermen who had lost too many boats. For ninety years a keeper lived in it with "
    "his family, and every evening he climed the hundred and twelve steps to light the lamp. Today "
    "the lamp is electric and turns by itself, but the steps are still there, and visiters may "
    "climb them on Sundays from May to September. From the top you can see the harbour, the old "
    "church and, on a clear day, the hills beyond the bay.\n"
)

# Timed pairs after the one that is shown; order ABBA, so that a machine whose speed drifts drifts
# under both alike.
PAIRS = 3

Show = Callable[[str, str], None]


@dataclass
class Side:
    """One of the two ways to decode."""

    title: str
    llm: LLM
    outputs: list[RequestOutput] = field(default_factory=list)

    def run(self, messages: list[dict[str, str]], params: SamplingParams, show: Show) -> None:
        """Decode once, showing the text as it comes."""
        text = ""
        for chunk in self.llm.stream(messages, params):
            text += chunk.text
            show(self.title, text)
            if chunk.output is not None:
                self.outputs.append(chunk.output)

    @property
    def speeds(self) -> list[float]:
        """Tokens per second of the silent runs, ascending.

        The shown one paid for first touches of memory and for drawing.
        """
        return sorted(run.metrics.tokens_per_second or 0.0 for run in self.outputs[1:])

    @property
    def speed(self) -> float:
        """Their median."""
        return statistics.median(self.speeds)


@flat
def run(
    loading: Loading,
    prompt: Annotated[
        str | None, typer.Option(help="Another message; the default edits a small file.")
    ] = None,
    max_tokens: MaxTokens = 200,
    json: Annotated[bool, typer.Option("--json", help=_show.JSON_HELP)] = False,
) -> None:
    """Decode the same answer plainly and speculatively; compare texts and speeds.

    Greedy, one request, both in this process, each with the weights for itself. The texts must be
    equal: a difference is an error, and the exit status is 1.
    """
    if loading.speculative_config == "none":
        raise ConfigError(
            "--speculative-config: found none, expected a way to draft: demo compares it with "
            "plain decoding"
        )
    messages = [{"role": "user", "content": PROMPT if prompt is None else prompt}]
    params = SamplingParams(temperature=0.0, max_tokens=max_tokens)
    with (
        replace(loading, speculative_config="none").load() as plain_llm,
        loading.load() as speculative_llm,
    ):
        plain, speculative = Side("plain", plain_llm), Side("speculative", speculative_llm)
        with _screen(plain.title, speculative.title, quiet=json) as show:
            _measure(plain, speculative, messages, params, show)
    report = _report(loading.model, plain, speculative)
    if json:
        _show.document(report)
    else:
        _print(report)
    if not report["same_text"]:
        raise SpecdecError("the two texts differ; please report this with `specdec env`")


def _measure(
    plain: Side,
    speculative: Side,
    messages: list[dict[str, str]],
    params: SamplingParams,
    show: Show,
) -> None:
    plain.run(messages, params, show)
    speculative.run(messages, params, show)
    for pair in range(PAIRS):
        order = (plain, speculative) if pair % 2 == 0 else (speculative, plain)
        for side in order:
            side.run(messages, params, lambda _title, _text: None)


def _report(model: str, plain: Side, speculative: Side) -> dict[str, Any]:
    texts = {run.outputs[0].text for side in (plain, speculative) for run in side.outputs}
    tokens = {
        tuple(run.outputs[0].token_ids) for side in (plain, speculative) for run in side.outputs
    }
    stats = speculative.outputs[0].metrics.speculative_decoding
    return {
        "model": model,
        "same_text": len(texts) == 1 and len(tokens) == 1,
        "num_tokens": len(plain.outputs[0].outputs[0].token_ids),
        "plain_tokens_per_second": plain.speed,
        "plain_tokens_per_second_runs": plain.speeds,
        "speculative_tokens_per_second": speculative.speed,
        "speculative_tokens_per_second_runs": speculative.speeds,
        "speedup": speculative.speed / plain.speed if plain.speed else None,
        "speculation": _speculation(stats) if stats is not None else None,
    }


def _speculation(stats: SpeculativeDecodingStats) -> dict[str, Any]:
    return {
        "num_spec_steps": stats.num_spec_steps,
        "num_draft_tokens": stats.num_draft_tokens,
        "num_accepted_draft_tokens": stats.num_accepted_draft_tokens,
        "draft_acceptance_rate": stats.draft_acceptance_rate,
        "mean_acceptance_length": stats.mean_acceptance_length,
        "acceptance_by_position": stats.acceptance_by_position,
        "draft_stop_reasons": stats.draft_stop_reasons,
    }


_REASONS = {
    "rejected": "the model chose another token",
    "all_accepted": "the whole draft was accepted",
    "no_draft": "nothing in the text to draft from",
    "budget": "no room left for a draft",
    "prompt": "the prompt was read",
    "finished": "the answer ended",
}


def _print(report: dict[str, Any]) -> None:
    same = "same text" if report["same_text"] else "DIFFERENT TEXT"
    typer.echo(f"{report['model']}: {same}, {report['num_tokens']} tokens, greedy")
    _print_speed("plain", report)
    _print_speed("speculative", report)
    typer.echo(f"speed-up     {report['speedup']:7.2f}x")
    stats = report["speculation"]
    if stats is None:
        return
    if not stats["num_draft_tokens"]:
        typer.echo("acceptance   nothing was drafted")
    else:
        typer.echo(
            f"acceptance   {stats['draft_acceptance_rate']:.0%} of "
            f"{stats['num_draft_tokens']} drafted tokens, "
            f"{stats['mean_acceptance_length']:.2f} tokens per drafted step"
        )
    for position, rate in enumerate(stats["acceptance_by_position"], start=1):
        typer.echo(f"  position {position}  {'█' * round(30 * rate):30} {rate:4.0%}")
    typer.echo("why drafts stopped")
    for reason, count in stats["draft_stop_reasons"].items():
        if count:
            typer.echo(f"  {count:4} x {_REASONS.get(reason, reason)}")


def _print_speed(title: str, report: dict[str, Any]) -> None:
    runs = report[f"{title}_tokens_per_second_runs"]
    median = report[f"{title}_tokens_per_second"]
    typer.echo(f"{title:12} {median:7.1f} tokens/s  (median of {runs[0]:.1f} to {runs[-1]:.1f})")


@contextmanager
def _screen(left: str, right: str, *, quiet: bool) -> Iterator[Show]:
    """Two columns on a terminal; otherwise each text once, as it comes."""
    if quiet:
        yield lambda _title, _text: None
    elif sys.stdout.isatty():
        yield from _columns(left, right)
    else:
        yield _Lines().show
        typer.echo()


class _Lines:
    """Prints what is new of each text under its title."""

    def __init__(self) -> None:
        self._title = ""
        self._shown = 0

    def show(self, title: str, text: str) -> None:
        if title != self._title:
            typer.echo(f"{'' if not self._title else chr(10)}--- {title}")
            self._title, self._shown = title, 0
        typer.echo(text[self._shown :], nl=False)
        self._shown = len(text)


def _columns(left: str, right: str) -> Iterator[Show]:
    from rich.columns import Columns
    from rich.console import Console
    from rich.live import Live
    from rich.panel import Panel
    from rich.text import Text

    console = Console()
    texts = {left: "", right: ""}

    def picture() -> Columns:
        width = max(console.width // 2 - 1, 20)
        lines = max(console.height - 6, 5)
        panels = [
            Panel(Text(_tail(text, width - 4, lines)), title=title, width=width, height=lines + 2)
            for title, text in texts.items()
        ]
        return Columns(panels, padding=(0, 1))

    with Live(picture(), console=console, refresh_per_second=20) as live:

        def show(title: str, text: str) -> None:
            texts[title] = text
            live.update(picture())

        yield show


def _tail(text: str, width: int, lines: int) -> str:
    """The last `lines` lines of `text` when wrapped at `width`."""
    wrapped = [
        line[start : start + width]
        for line in text.split("\n")
        for start in range(0, max(len(line), 1), width)
    ]
    return "\n".join(wrapped[-lines:])
