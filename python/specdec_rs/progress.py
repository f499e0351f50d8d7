"""Progress of long work (fetching, loading), to stderr, for a person or for a log."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["Progress", "Silent", "to_stderr"]


class Progress(Protocol):
    """Something that shows how far a piece of work is. `update` may be called at any rate."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

    def update(self, done: int, total: int, what: str) -> None:
        """`done` bytes of `total` are there; `what` says what is going on."""

    def say(self, line: str) -> None:
        """One line of news."""


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, done: int, total: int, what: str) -> None:
        """Nothing is shown."""

    def say(self, line: str) -> None:
        """Nothing is shown."""


class Lines(Silent):
    """A line at every tenth of the way: for logs and pipes, where a moving bar is noise."""

    def __init__(self) -> None:
        self._tenth = -1
        self._what = ""

    def update(self, done: int, total: int, what: str) -> None:
        """Print when another tenth is done or other work begins."""
        tenth = done * 10 // total if total else 10
        if (tenth, what) != (self._tenth, self._what):
            self.say(f"{what}: {tenth * 10}% of {total / 1e6:.0f} MB")
            self._tenth, self._what = tenth, what

    def say(self, line: str) -> None:
        """Print the line."""
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - this class is the printer


class Bar(Silent):
    """A moving bar with rate and time left, for a terminal."""

    def __init__(self) -> None:
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def _open(self) -> RichProgress:
        from rich import progress as rich  # noqa: PLC0415 - not needed by `import specdec_rs`
        from rich.console import Console  # noqa: PLC0415

        return rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.DownloadColumn(),
            rich.TransferSpeedColumn(),
            rich.TimeRemainingColumn(),
            console=Console(stderr=True),
        )

    def __enter__(self) -> Self:
        self._bar = self._open()
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def update(self, done: int, total: int, what: str) -> None:
        """Move the bar."""
        if self._bar is None:
            return
        if self._task is None:
            self._task = self._bar.add_task(what, total=total)
        self._bar.update(self._task, completed=done, total=total, description=what)

    def say(self, line: str) -> None:
        """Print the line above the bar."""
        if self._bar:
            self._bar.console.print(line)


def to_stderr() -> Progress:
    """A bar where stderr is a terminal, lines otherwise."""
    return Bar() if sys.stderr.isatty() else Lines()


def loading() -> Progress:
    """A bar where stderr is a terminal; loading is too short to deserve lines in a log."""
    return Bar() if sys.stderr.isatty() else Silent()
