"""Runs a program of the tests in an interpreter of its own, as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(
    code: str, *arguments: str | Path, patience: float = 100
) -> subprocess.CompletedProcess[str]:
    """Run `code` with `arguments`; a hang is an error after `patience` seconds."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=patience,
    )
