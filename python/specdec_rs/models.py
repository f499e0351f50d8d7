"""From what a user writes for a model (name, path, folder, hub id) to a file on this machine."""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path

from specdec_rs import _checks as check
from specdec_rs._shown import shown
from specdec_rs.catalogue import CATALOGUE, Model, Part
from specdec_rs.errors import ModelLoadError, ModelNotFoundError
from specdec_rs.fetch import fetch
from specdec_rs.progress import Progress

__all__ = ["CATALOGUE", "Model", "Part", "fetch", "named", "resolve"]

# owner/repository, optionally with the file or the quantisation wanted: owner/repository:Q4_K_M
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(?<!\.gguf)(:[\w./-]+)?")


def named(name: str) -> Model:
    """The catalogue entry of that name.

    Raises:
        ModelNotFoundError: there is none; the message lists those there are.
    """
    if name not in CATALOGUE:
        raise ModelNotFoundError(
            f"no model named {name!r}{check.near(name, CATALOGUE)}; known ones are "
            f"{', '.join(CATALOGUE)}"
        )
    return CATALOGUE[name]


def resolve(
    model: str | PathLike[str], *, revision: str | None = None, progress: Progress | None = None
) -> Path:
    """A GGUF file or a folder of transformers for `model`, fetched or downloaded if need be.

    A catalogue name wins over a file of the same name (write `./name` for the file); then paths
    and folders with one GGUF file, or with `config.json` and safetensors; then hub ids,
    `owner/repository` with an optional `:FILE` or `:QUANTISATION`, which need the `hub` extra.

    Args:
        model: what the user wrote.
        revision: branch, tag or commit; for hub ids only.
        progress: shows how far a download is.

    Raises:
        ConfigError: `model` is no string or path, or `revision` is given and `model` no hub id.
        ModelNotFoundError: there is no such thing, or a folder does not hold one GGUF file.
        ModelLoadError: it is one file of a folder of transformers, or lies where this user may not
            look.
        FetchError: it exists but could not be brought here.
    """
    if not isinstance(model, (str, PathLike)):
        raise check.wrong("model", model, "a catalogue name, a path, a folder or a hub id")
    written = check.text("model", fspath(model))
    if revision is not None:
        check.text("revision", revision)
    if isinstance(model, str) and model in CATALOGUE:
        _no_revision(revision, written, "of the catalogue")
        return fetch(CATALOGUE[model], progress)
    path = _path(written)
    kind = _kind(path)
    if kind is not None:
        _no_revision(revision, written, "on this machine")
        return _local(path, kind)
    if isinstance(model, str) and _HUB_ID.fullmatch(model):
        from specdec_rs.hub import from_hub  # noqa: PLC0415 - needs an optional package

        return from_hub(model, revision)
    raise ModelNotFoundError(
        f"no file, folder or catalogue model {shown(written)}{check.near(written, CATALOGUE)}; "
        f"give the path of a GGUF file or one of {', '.join(CATALOGUE)}"
    )


def _no_revision(revision: str | None, model: str, where: str) -> None:
    if revision is not None:
        expected = f"None: {model!r} is a model {where}, and only a hub id has revisions"
        raise check.wrong("revision", revision, expected)


def _local(path: Path, kind: int) -> Path:
    if kind == stat.S_IFDIR:
        return path if _kind(path / "config.json") == stat.S_IFREG else _only_gguf(path)
    weights = kind == stat.S_IFREG and path.suffix.lower() == ".safetensors"
    if weights and not _is_gguf(path):
        raise ModelLoadError(
            f"{path} holds weights alone; give its folder, {path.absolute().parent}, which is to "
            "hold config.json and the tokenizer too"
        )
    return path


def _is_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return True  # the engine says why it cannot be read


def _only_gguf(folder: Path) -> Path:
    with _looking_at(folder):
        found = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".gguf")
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise ModelNotFoundError(
            f"{folder} holds no config.json and {len(found)} GGUF files ({names}), expected one; "
            "name the file itself"
        )
    return found[0]


def _path(written: str) -> Path:
    path = Path(written)
    try:
        return path.expanduser()
    except RuntimeError:  # `~name` of nobody here
        return path


def _kind(path: Path) -> int | None:
    """The file type of what lies there; None: nothing."""
    with _looking_at(path):
        try:
            return stat.S_IFMT(path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a NUL character
            return None
        except OSError as error:
            if error.errno not in {errno.ENAMETOOLONG, errno.ELOOP}:
                raise
            return None


@contextmanager
def _looking_at(path: Path) -> Iterator[None]:
    """The error of a file that the engine cannot open, for what cannot even be looked at."""
    try:
        yield
    except OSError as error:
        raise ModelLoadError(f"cannot open {path}: {error.strerror or error}") from error
