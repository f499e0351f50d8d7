"""The hierarchy of exceptions, as callers rely on it."""

from __future__ import annotations

import pytest

import specdec_rs as sd
from specdec_rs import errors

ALSO: dict[str, type[Exception]] = {
    "ClosedError": RuntimeError,
    "ConfigError": ValueError,
    "ContextLengthError": ValueError,
    "DiskFullError": RuntimeError,
    "DownloadError": RuntimeError,
    "EngineDeadError": RuntimeError,
    "FetchError": RuntimeError,
    "ForkError": RuntimeError,
    "HashMismatchError": RuntimeError,
    "LogitsError": ArithmeticError,
    "MemoryBudgetError": MemoryError,
    "ModelLoadError": RuntimeError,
    "ModelNotFoundError": FileNotFoundError,
    "NotSupportedYetError": ValueError,
    "PipMissingError": RuntimeError,
    "QueueFullError": RuntimeError,
    "ReentryError": ValueError,
    "RequestAborted": Exception,
    "SpecdecError": Exception,
}


def test_the_table_is_complete() -> None:
    assert sorted(ALSO) == errors.__all__


@pytest.mark.parametrize("name", ALSO)
def test_every_error_is_a_specdec_error_and_what_callers_catch(name: str) -> None:
    kind = getattr(sd, name)
    assert issubclass(kind, sd.SpecdecError)
    assert issubclass(kind, ALSO[name])
    assert kind.__doc__
