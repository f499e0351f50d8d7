"""Small wheels that carry pieces of a make-believe model."""

from __future__ import annotations

import hashlib
import random
import zipfile
from pathlib import Path

from specdec_rs.catalogue import Model, Part

PIECES = 3
DATA = random.Random(7).randbytes(300_001)  # not a multiple of anything


def model(name: str = "tiny", data: bytes = DATA, pieces: int = PIECES) -> Model:
    """A catalogue entry whose parts are `name-part1` to `name-partN`."""
    return Model(
        name=name,
        about="",
        parts=tuple(
            Part(f"{name}-part{n}==1.0", f"{name}_part{n}/data/part*.bin")
            for n in range(1, pieces + 1)
        ),
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def piece(n: int, data: bytes = DATA, pieces: int = PIECES) -> bytes:
    """The `n`-th piece, from 1; the last one is the longest."""
    step = len(data) // pieces
    return data[(n - 1) * step : None if n == pieces else n * step]


def path(shelf: Path, n: int, name: str = "tiny") -> Path:
    """Where the wheel of piece `n` lies."""
    return shelf / f"{name}_part{n}-1.0-py3-none-any.whl"


def put(shelf: Path, n: int, content: bytes | None = None, name: str = "tiny") -> Path:
    """Write the wheel of piece `n`, split in two members to be joined by name."""
    content = piece(n) if content is None else content
    half = len(content) // 2
    package = f"{name}_part{n}"
    files = {
        f"{package}/data/part{n}b.bin": content[half:],
        f"{package}/data/part{n}a.bin": content[:half],
        f"{package}/__init__.py": b"raise SystemExit('wheels are never imported')",
        f"{package}-1.0.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: {name}-part{n}\nVersion: 1.0\n"
            "Requires-Dist: a-package-that-does-not-exist\n"
        ).encode(),
        f"{package}-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        f"{package}-1.0.dist-info/RECORD": b"",
    }
    with zipfile.ZipFile(path(shelf, n, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, data in files.items():
            wheel.writestr(member, data)
    return path(shelf, n, name)


def put_all(shelf: Path) -> None:
    """Write every wheel of `model()`."""
    for n in range(1, PIECES + 1):
        put(shelf, n)
