"""From what a user writes for a model to a file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import specdec_rs as sd
from specdec_rs.catalogue import CATALOGUE
from specdec_rs.models import named, resolve


def test_the_catalogue_is_the_published_one() -> None:
    facts = {name: (m.size, len(m.parts), m.sha256[:8]) for name, m in CATALOGUE.items()}
    assert facts == {
        "smollm2-135m": (98_362_432, 1, "b179c952"),
        "qwen2.5-coder-1.5b": (1_117_320_768, 22, "cc324af0"),
        "qwen2.5-coder-0.5b": (491_400_064, 6, "1d961463"),
        "gemma3-270m": (253_113_024, 4, "a5fd3b62"),
    }
    assert all(len(m.sha256) == 64 for m in CATALOGUE.values())
    assert all("==" in part.requirement for m in CATALOGUE.values() for part in m.parts)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(sd.ModelNotFoundError, match=r"did you mean 'smollm2-135m'.*gemma3-270m"):
        named("smolm2-135m")


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "any.name"
    file.write_bytes(b"")
    assert resolve(file) == file
    assert resolve(str(file)) == file


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "m.gguf").write_bytes(b"")
    assert resolve("~/m.gguf") == tmp_path / "m.gguf"


def test_a_folder_with_one_model(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("")
    (tmp_path / "m.GGUF").write_bytes(b"")
    assert resolve(tmp_path) == tmp_path / "m.GGUF"


def test_a_folder_with_two_models_names_them(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"")
    (tmp_path / "b.gguf").write_bytes(b"")
    with pytest.raises(sd.ModelNotFoundError, match=r"2 GGUF files \(a\.gguf, b\.gguf\)"):
        resolve(tmp_path)


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(sd.ModelNotFoundError, match=r"0 GGUF files \(none\)"):
        resolve(tmp_path)


@pytest.mark.parametrize("missing", ["nowhere.gguf", "a/b.gguf", "/no/such/file", "smollm2"])
def test_a_missing_file_is_also_a_file_not_found_error(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sd.ModelNotFoundError, match="give the path of a GGUF file") as caught:
        resolve(missing)
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, sd.SpecdecError)


@pytest.mark.parametrize(
    "name", ["x" * 5000, "x" * 300 + ".gguf", "~nobody-of-this-name/m", "a\0b"]
)
def test_a_name_that_no_file_can_have(name: str) -> None:
    with pytest.raises(sd.ModelNotFoundError, match="no file, folder or catalogue") as caught:
        resolve(name)
    assert len(str(caught.value)) < 500


def test_a_loop_of_links_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").symlink_to(tmp_path / "m.gguf")
    with pytest.raises(sd.ModelNotFoundError):
        resolve(tmp_path / "m.gguf")


# The first call loads what another user may not be able to import.
AS_NOBODY = """
import os, sys
import specdec_rs as sd
try:
    sd.LLM("no/such/file.gguf")
except sd.ModelNotFoundError:
    pass
if os.geteuid() == 0:
    os.seteuid(65534)
for path in sys.argv[2:]:
    draft = {"method": "draft_model", "model": path}
    for call in (
        lambda: sd.LLM(path),
        lambda: sd.LLM(sys.argv[1], speculative_config=draft),
    ):
        try:
            call()
        except sd.ModelLoadError as error:
            print(type(error).__name__, error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files are not Windows'")
@pytest.mark.parametrize("mode", [0o000, 0o600, 0o300])
def test_a_folder_that_may_not_be_looked_into(mode: int) -> None:
    """Not under `tmp_path`, which another user may not reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        beside = Path(name, "target.gguf")
        beside.write_bytes(b"")
        folder = Path(name, "d")
        folder.mkdir()
        (folder / "t.gguf").write_bytes(b"")
        folder.chmod(mode)
        paths = [str(folder)] if mode == 0o300 else [str(folder), str(folder / "t.gguf")]
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(beside), *paths],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        folder.chmod(0o700)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * len(paths)
    for line in lines:
        assert line.startswith(f"ModelLoadError cannot open {folder}")
        assert "Permission denied" in line


@pytest.mark.parametrize("wrong", [None, 3, b"m.gguf", ["m.gguf"], ""])
def test_what_is_no_name_at_all(wrong: object) -> None:
    with pytest.raises(sd.ConfigError, match=r"^model: found "):
        resolve(wrong)  # type: ignore[arg-type]


def test_one_file_of_safetensors_is_named_by_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    with pytest.raises(sd.ModelLoadError, match="give its folder") as caught:
        resolve(file)
    assert str(tmp_path) in str(caught.value)
    file.write_bytes(b"GGUF")  # the name does not matter where the file is one
    assert resolve(file) == file


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "model.safetensors"
    os.mkfifo(pipe)
    assert resolve(pipe) == pipe  # the engine says that it is no file
    with pytest.raises(sd.ModelLoadError):
        sd.LLM(pipe)


@pytest.mark.parametrize("kind", ["catalogue", "file", "folder"])
def test_a_revision_is_for_hub_ids(cache: Path, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF")
    model = {"catalogue": "smollm2-135m", "file": str(file), "folder": str(tmp_path)}[kind]
    with pytest.raises(sd.ConfigError, match=r"^revision: found 'x'.*only a hub id") as caught:
        resolve(model, revision="x")
    assert repr(model) in str(caught.value)
    with pytest.raises(sd.ConfigError, match=r"^revision: found 'x'"):
        sd.LLM(model, revision="x")


@pytest.mark.parametrize("wrong", ["", 3])
def test_what_is_no_revision(wrong: object) -> None:
    with pytest.raises(sd.ConfigError, match=r"^revision: found .*a string"):
        resolve("owner/repo", revision=wrong)  # type: ignore[arg-type]


def test_a_catalogue_name_wins_over_a_folder(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = CATALOGUE["smollm2-135m"]
    whole = cache / "models" / "smollm2-135m.gguf"
    whole.parent.mkdir(parents=True)
    with whole.open("wb") as file:
        file.truncate(model.size)  # a checked file has the name, so the size is enough
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smollm2-135m").mkdir()
    (tmp_path / "smollm2-135m" / "other.gguf").write_bytes(b"")
    assert resolve("smollm2-135m") == whole
    assert resolve("./smollm2-135m") == Path("smollm2-135m/other.gguf")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub cache as `huggingface_hub` lays it out, with one repository and no network."""
    home = tmp_path / "hub"
    repository = home / "hub" / "models--owner--repo"
    snapshot = repository / "snapshots" / ("c" * 40)
    (snapshot / "sub").mkdir(parents=True)
    (snapshot / "m-Q4_K_M.gguf").write_bytes(b"four")
    (snapshot / "sub" / "m-Q8_0.gguf").write_bytes(b"eight")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("c" * 40)
    monkeypatch.setenv("HF_HOME", str(home))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return home


def resolve_apart(model: str) -> str:
    """Resolve in a process of its own: the hub reads its environment when imported."""
    code = (
        "import sys, specdec_rs as sd\n"
        "from specdec_rs.models import resolve\n"
        "try: print(resolve(sys.argv[1]))\n"
        "except sd.ModelLoadError as error: print(type(error).__name__, error)\n"
    )
    run = [sys.executable, "-W", "error", "-c", code, model]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("wanted", "content"),
    [("Q4_K_M", "four"), ("q8_0", "eight"), ("sub/m-Q8_0.gguf", "eight")],
)
def test_a_hub_id_with_a_file(hub: Path, wanted: str, content: str) -> None:
    assert Path(resolve_apart(f"owner/repo:{wanted}")).read_text() == content


def test_a_hub_id_of_a_folder(hub: Path) -> None:
    repository = hub / "hub" / "models--owner--folder"
    snapshot = repository / "snapshots" / ("d" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("d" * 40)
    assert resolve_apart("owner/folder") == str(snapshot)
    assert resolve_apart("owner/folder:Q4_K_M").startswith(
        "ModelNotFoundError 'owner/folder:Q4_K_M' fits 0 GGUF files"
    )


def test_a_hub_id_with_several_files_names_them(hub: Path) -> None:
    answer = resolve_apart("owner/repo")
    assert answer.startswith("ModelNotFoundError 'owner/repo' fits 2 GGUF files")
    assert "m-Q4_K_M.gguf, sub/m-Q8_0.gguf" in answer


def test_a_hub_that_cannot_be_reached(hub: Path) -> None:
    answer = resolve_apart("owner/other")
    assert answer.startswith("DownloadError the hub did not give 'owner/other'")


def test_a_hub_id_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "huggingface_hub.py").write_text("raise ImportError('not installed')")
    code = "from specdec_rs.models import resolve; resolve('owner/repo')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ModelNotFoundError" in done.stderr
    assert "pip install huggingface_hub" in done.stderr
