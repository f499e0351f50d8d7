"""Values that break what looks at them: no parameter may answer with an untyped error."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import specdec_rs as sd
from specdec_rs import _checks as check
from specdec_rs import _prompts
from specdec_rs._shown import shown
from specdec_rs.tokenizer import Tokenizer


class Silent:
    """Has no text."""

    def __repr__(self) -> str:
        raise RuntimeError


def nested() -> list[object]:
    """Deeper than `repr` goes."""
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    return value


HOSTILE: dict[str, Any] = {
    "no text": Silent(),
    "list of no text": [Silent()],
    "digits": 10**5000,
    "negative digits": -(10**5000),
    "list of digits": [10**5000],
    "dict of digits": {10**5000: 10**5000},
    "long text": "x" * 100_000,
    "deep": nested(),
    "array": np.array([1, 2]),
    "text array": np.array(["a", "b"]),
    "no dimensions": np.array(1),
    "text of no dimensions": np.array("a"),
    "class": list,
}


def typed(call: Callable[[], object]) -> None:
    """Works, or says in a short line what is wrong."""
    said = ""
    try:
        call()
    except sd.SpecdecError as error:
        said = str(error)
    assert len(said) < 1000
    assert said.isprintable()


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("of", [sd.SamplingParams, sd.SpeculativeConfig])
def test_parameters(of: Any, kind: str) -> None:
    for field in fields(of):
        typed(lambda name=field.name: of(**{name: HOSTILE[kind]}))  # type: ignore[misc]


@pytest.mark.parametrize("kind", HOSTILE)
def test_arguments_of_a_model(kind: str) -> None:
    for name in set(inspect.signature(sd.LLM).parameters) - {"unknown"}:
        given: dict[str, Any] = {"model": "no/such/file.gguf", name: HOSTILE[kind]}
        with pytest.raises(sd.SpecdecError) as caught:
            sd.LLM(**given)
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("kind", HOSTILE)
def test_prompts_and_their_parameters(kind: str) -> None:
    value = HOSTILE[kind]
    typed(lambda: _prompts.several("prompts", value))
    with pytest.raises(sd.ConfigError, match=r"^sampling_params: found"):
        _prompts.params_for(2, value)


@pytest.mark.parametrize("kind", sorted(set(HOSTILE) - {"array"}))
def test_ids_to_decode(kind: str) -> None:
    nothing: Any = None  # no engine is asked
    with pytest.raises(sd.ConfigError, match=r"^token_ids"):
        Tokenizer(nothing).decode(HOSTILE[kind])


def test_the_names_of_a_dict() -> None:
    for name in (10**5000, Silent()):
        with pytest.raises(sd.ConfigError, match="has no parameter"):
            sd.SpeculativeConfig.of({name: 1})


@pytest.mark.parametrize("text", ["9" * 5000 + "GiB", "1." + "9" * 5000 + "GiB", "9" * 50 + "B"])
def test_sizes(text: str) -> None:
    with pytest.raises(sd.ConfigError, match=r"^memory_budget: found '"):
        check.size("memory_budget", text)


def test_what_is_shown() -> None:
    assert shown(7) == "7"
    assert shown("x" * 100) == "'" + "x" * 76 + "..."
    assert shown(-(10**5000)) == "a whole number of 16610 bits"
    assert shown([10**5000]) == "a value whose repr raises ValueError"
    assert shown(Silent()) == "a value whose repr raises RuntimeError"


def test_an_error_of_the_callers_own_iterator_is_not_hidden() -> None:
    def numbers() -> Iterable[int]:
        yield 1
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sd.SamplingParams(stop_token_ids=numbers())  # type: ignore[arg-type]
