"""What a hub id names, through `huggingface_hub`: its cache, its login, its offline switch."""

from __future__ import annotations

from pathlib import Path

from specdec_rs.errors import DownloadError, ModelNotFoundError

__all__ = ["from_hub"]

# What the engine reads of a folder.
_FOLDER = ["*.json", "*.safetensors", "chat_template.jinja"]


def from_hub(model: str, revision: str | None = None) -> Path:
    """What a hub id names, downloaded into the hub's own cache if need be.

    It is the repository's GGUF file, or, where it has none, its folder of safetensors.

    Args:
        model: `owner/repository`, or with `:FILE` or `:QUANTISATION` where it holds several.
        revision: branch, tag or commit.

    Raises:
        ModelNotFoundError: `huggingface_hub` is not installed, or no one file fits.
        DownloadError: the hub could not be reached or refused.
    """
    try:
        import huggingface_hub as hub  # noqa: PLC0415 - an optional package
    except ImportError:
        raise ModelNotFoundError(
            f"no file or folder {model!r}; if it is a hub id, install what downloads from the hub "
            "first: pip install huggingface_hub"
        ) from None
    repository, _, wanted = model.partition(":")
    try:
        names = _names(repository, revision)
        if "config.json" in names and not wanted and not _ggufs(names):
            return Path(
                hub.snapshot_download(repository, revision=revision, allow_patterns=_FOLDER)
            )
        name = _pick(model, _ggufs(names), wanted)
        return Path(hub.hf_hub_download(repository, name, revision=revision))
    except ModelNotFoundError:
        raise
    except Exception as error:  # the errors of the hub have no common base but this
        raise DownloadError(
            f"the hub did not give {model!r}: {type(error).__name__}: {error}"
        ) from error


def _names(repository: str, revision: str | None) -> list[str]:
    """The repository's files: as the hub lists them, offline as the hub's cache holds them."""
    import huggingface_hub as hub  # noqa: PLC0415 - an optional package
    from huggingface_hub import constants  # noqa: PLC0415

    if constants.HF_HUB_OFFLINE:
        folder = Path(hub.snapshot_download(repository, revision=revision, local_files_only=True))
        return [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    return hub.HfApi().list_repo_files(repository, revision=revision)


def _ggufs(names: list[str]) -> list[str]:
    return sorted(name for name in names if name.lower().endswith(".gguf"))


def _pick(model: str, names: list[str], wanted: str) -> str:
    """The one file that fits: an exact name, or a part of one in any case (a quantisation)."""
    fitting = [name for name in names if name == wanted]
    fitting = fitting or [name for name in names if wanted.lower() in name.lower()]
    if len(fitting) != 1:
        raise ModelNotFoundError(
            f"{model!r} fits {len(fitting)} GGUF files, expected one; its files are "
            f"{', '.join(names) or 'none'}: name one as owner/repository:FILE"
        )
    return fitting[0]
