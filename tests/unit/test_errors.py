"""The hierarchy of exceptions, as callers rely on it."""

from __future__ import annotations

from pathlib import Path

import pytest

import specdec_rs as sd
from specdec_rs import errors
from tests.scripts import run

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


# The front refuses such a count; behind it, it is a panic of the engine's code.
PANIC = """
import sys
import specdec_rs as sd
from specdec_rs import _core
llm = sd.LLM(sys.argv[1])
try:
    _core.pass_costs(sys.argv[1], context=8, widest=1, repeats=2**62)
except Exception as error:
    print(type(error).__name__, "capacity overflow" in str(error))
params = sd.SamplingParams(max_tokens=3, ignore_eos=True)
print(len(llm.generate("a", params, use_tqdm=False)[0].outputs[0].token_ids))
"""


def test_a_panic_is_an_ordinary_exception_and_ends_nothing(tiny: Path) -> None:
    done = run(PANIC, tiny)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["EngineDeadError True", "3"]
