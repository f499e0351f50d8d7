"""The folder where fetched models live, and what can go wrong with its disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_rs.errors import DiskFullError, FetchError

if TYPE_CHECKING:
    from specdec_rs.progress import Progress

__all__ = ["cache_dir", "disk_errors", "locked", "models_dir"]


def cache_dir() -> Path:
    """`$SPECDEC_CACHE`, else the platform's cache folder for this program."""
    chosen = os.environ.get("SPECDEC_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs  # noqa: PLC0415 - not needed by `import specdec_rs`

    return platformdirs.user_cache_path("specdec", appauthor=False)


def models_dir() -> Path:
    """Where whole models lie, each as `NAME.gguf`."""
    return cache_dir() / "models"


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn what the file system says about `folder` into typed errors that tell what to do."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FetchError):
            raise
        advice = "set SPECDEC_CACHE to a folder elsewhere"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(f"no space left for {folder}; free some or {advice}") from error
        raise FetchError(f"cannot write to {folder}: {error}; {advice}") from error


@contextmanager
def locked(path: Path, progress: Progress) -> Iterator[None]:
    """Hold the lock file `path` against other processes and threads; waits, and says so."""
    import filelock  # noqa: PLC0415 - not needed by `import specdec_rs`

    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        progress.say(f"waiting for another process that holds {path}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
