"""A foreign process that keeps one core busy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_core() -> Iterator[None]:
    """Pinned to one core of those that this process may use, for as long as the block runs."""
    core = min(os.sched_getaffinity(0))
    # It ends by itself if this process is killed: its parent is another one then.
    code = (
        f"import os; os.sched_setaffinity(0, [{core}]); print(flush=True)\n"
        f"while os.getppid() == {os.getpid()}: pass"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()
