"""Tiny models for the oracles, made by the testkit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "tests" / "vectors"


def cook(recipe: dict, folder: Path) -> Path:
    """The model file of a recipe, in `folder`."""
    written, model = folder / "recipe.json", folder / "model.gguf"
    written.write_text(json.dumps(recipe))
    build = ["cargo", "run", "-q", "--release", "-p", "specdec-testkit", "--bin", "tiny-model"]
    flags = ["--", "--recipe", str(written), "--out", str(model)]
    subprocess.run(build + flags, cwd=ROOT, check=True)
    return model
