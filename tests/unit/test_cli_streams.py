"""What the command line does when its streams are closed, full, or hold no text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts import PATIENCE, specdec


def shell(
    line: str, *arguments: str | Path, said: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line as `$0 -m specdec_rs` in a shell, its arguments being $1 and so on."""
    return subprocess.run(
        ["sh", "-c", line, sys.executable, *map(str, arguments)],
        input=said,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("verb", ["generate", "chat"])
def test_a_closed_stdin_is_an_error(tiny: Path, verb: str) -> None:
    done = shell(f'exec "$0" -m specdec_rs {verb} -m "$1" <&-', tiny)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: stdin: found it closed")


@pytest.mark.parametrize("verb", ["generate", "chat"])
def test_bytes_that_are_no_text_are_an_error(tiny: Path, verb: str) -> None:
    line = f'PYTHONIOENCODING=utf-8:strict exec "$0" -m specdec_rs {verb} -m "$1"'
    done = shell(line, tiny, said=b"\xff\n")
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: stdin: found byte 0xff, expected text in utf-8")


def test_a_full_disk_is_an_error(tiny: Path) -> None:
    line = 'exec "$0" -m specdec_rs generate -m "$1" --max-tokens 2 a >/dev/full'
    done = shell(line, tiny)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: [Errno 28]")
    assert len(done.stderr.splitlines()) == 1


def test_a_dash_is_stdin(tiny: Path) -> None:
    told = ["generate", "-m", str(tiny), "--max-tokens", "3", "--temperature", "0"]
    assert specdec(*told, "-", stdin="abc").stdout == specdec(*told, "abc").stdout


def test_a_demo_without_a_draft_is_refused(tiny: Path) -> None:
    done = specdec("demo", "-m", str(tiny), "--speculative-config", "none")
    assert done.returncode == 2
    assert "--speculative-config: found none" in done.stderr
