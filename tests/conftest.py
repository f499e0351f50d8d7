"""Shared by all Python tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import specdec_rs as sd
from specdec_rs.models import resolve


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The small real model, fetched into the cache if it is not there."""
    return resolve("smollm2-135m")


@pytest.fixture(scope="session")
def llm(smollm2: Path) -> Iterator[sd.LLM]:
    """The small real model, loaded once, with speculation as users get it."""
    with sd.LLM(smollm2) as llm:
        yield llm
