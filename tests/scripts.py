"""Runs a program of the tests in an interpreter of its own, as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]

# A hang is an error. Everything that is run here takes seconds.
PATIENCE = 100
# A shell that starts the tests in the background has them ignore Ctrl-C, and children inherit it.
AT_A_TERMINAL = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def run(code: str, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `code` with `arguments`, with `environment` beside this one's."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", AT_A_TERMINAL + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env={**os.environ, **environment},
    )


def specdec(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "specdec_rs", *arguments],
        capture_output=True,
        text=True,
        check=False,
        input=stdin,
        timeout=PATIENCE,
    )


def output(
    *command: str | Path,
    said: str = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """What a command prints that is given `said` and must end well."""
    done = subprocess.run(
        list(map(str, command)),
        input=said,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
