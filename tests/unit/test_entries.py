"""The entries that people and CI run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGETS = (
    "help demo test test-rust test-python test-exact mutants test-oracle test-torch fuzz test-asan"
    " test-valgrind lint wheel wheel-manylinux test-wheel bench"
).split()


def test_help_lists_every_target() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = re.findall(r"^  make (\S+) +\S", done.stdout, re.MULTILINE)
    assert listed == TARGETS


def test_every_recipe_expands() -> None:
    done = subprocess.run(
        ["make", "--dry-run", *TARGETS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_contributing_names_every_target() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert all(f"`make {target}`" in text for target in TARGETS)


def test_ci_runs_the_same_entries() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test\nmake test-wheel\nmake test-torch\n" in script.read_text()
