"""The package as a whole: light to import, complete in what it names."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import specdec_rs as sd

ROOT = Path(__file__).parents[2]

HEAVY = ("torch", "numpy", "typer", "rich", "tqdm", "huggingface_hub", "asyncio", "subprocess")


def test_import_brings_in_nothing_heavy() -> None:
    code = f"import specdec_rs, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_everything_named_is_there_once() -> None:
    assert len(set(sd.__all__)) == len(sd.__all__)
    assert all(hasattr(sd, name) for name in sd.__all__)


def test_the_version_is_the_workspace_version() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert sd.__version__ == cargo["workspace"]["package"]["version"]
    assert sd.build_info()["version"] == sd.__version__


def test_the_tree_keeps_its_own_rules() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "check_layout.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
