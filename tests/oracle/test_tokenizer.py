"""The committed token ids are what llama.cpp says today."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tokenizer import FOLDER, MODELS, vectors


@pytest.mark.parametrize("file", MODELS)
def test_committed_ids_are_the_oracles(file: str) -> None:
    path = os.environ.get(MODELS[file])
    if path is None:
        pytest.skip(f"{MODELS[file]} does not name the model file")
    kept = json.loads((FOLDER / f"{file}.json").read_text())
    assert len(kept["cases"]) >= 200
    assert vectors(Path(path)) == kept
