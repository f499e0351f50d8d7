"""The types are part of the product: callers check, and the stub is what the extension is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(module: str, *arguments: str, cwd: Path) -> None:
    """Run outside the repository, so that the installed package is what is looked at."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(600)
def test_a_typed_caller(tmp_path: Path) -> None:
    run("mypy", "--strict", str(Path(__file__).with_name("usage.py")), cwd=tmp_path)


@pytest.mark.timeout(600)
def test_the_stub_is_what_the_extension_is(tmp_path: Path) -> None:
    run("mypy.stubtest", "specdec_rs._core", cwd=tmp_path)
