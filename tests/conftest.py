"""Models for the tests: the small real one, and tiny random ones from the testkit."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import specdec_rs as sd

ROOT = Path(__file__).parents[1]

# The oracles' environments lack the package, so it is imported by the fixtures that need it.


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The small real model, from the cache that `specdec fetch` fills."""
    from specdec_rs.models import resolve

    return resolve("smollm2-135m")


@pytest.fixture(scope="session")
def llm(smollm2: Path) -> Iterator[sd.LLM]:
    """The small real model, loaded once, with speculation as users get it."""
    import specdec_rs as sd

    with sd.LLM(smollm2) as loaded:
        yield loaded


@pytest.fixture(scope="session")
def plain_llm(smollm2: Path) -> Iterator[sd.LLM]:
    """The small real model without speculation."""
    import specdec_rs as sd

    with sd.LLM(smollm2, speculative_config=None) as loaded:
        yield loaded


Cook = Callable[..., Path]


@pytest.fixture(scope="session")
def cook(tmp_path_factory: pytest.TempPathFactory) -> Cook:
    """Makes tiny random models: `cook(fault=None, folder=False, **recipe)` is one's path."""
    build = ["cargo", "build", "-q", "--release", "--locked", "-p", "specdec-testkit"]
    messages = subprocess.run(
        [*build, "--bin", "tiny-model", "--message-format", "json"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    built = [json.loads(line).get("executable") for line in messages.stdout.splitlines()]
    (program,) = filter(None, built)
    home = tmp_path_factory.mktemp("tiny")

    def run(*, fault: str | None = None, folder: bool = False, **recipe: object) -> Path:
        recipe_file = home / "recipe.json"
        recipe_file.write_text(json.dumps(recipe))
        model = home / f"{len(list(home.iterdir()))}{'' if folder else '.gguf'}"
        planted = ["--fault", fault] if fault else []
        out = "--folder" if folder else "--out"
        command = [program, "--recipe", str(recipe_file), out, str(model), *planted]
        subprocess.run(command, check=True)
        return model

    return run


@pytest.fixture(scope="session")
def tiny(cook: Cook) -> Path:
    """A tiny random model."""
    return cook()
