"""Tiny models for the oracles, made by the testkit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "vectors"


def cook(recipe: dict, folder: Path) -> Path:
    """The model file of a recipe, in `folder`."""
    return _cook(recipe, folder, "--out", folder / "model.gguf")


def cook_folder(recipe: dict, folder: Path) -> Path:
    """The same model as transformers writes it: a folder in `folder`."""
    return _cook(recipe, folder, "--folder", folder / "model")


def _cook(recipe: dict, folder: Path, flag: str, model: Path) -> Path:
    written = folder / "recipe.json"
    written.write_text(json.dumps(recipe))
    build = ["cargo", "run", "-q", "--release", "-p", "specdec-testkit", "--bin", "tiny-model"]
    flags = ["--", "--recipe", str(written), flag, str(model)]
    subprocess.run(build + flags, cwd=ROOT, check=True)
    return model
