"""SamplingParams: every mistake is a ConfigError that names field, found and expected."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from specdec_rs import ConfigError, NotSupportedYetError, SamplingParams, SpecdecError

NAMES = [field.name for field in fields(SamplingParams)]


def test_defaults_are_the_documented_ones() -> None:
    params = SamplingParams()
    assert (params.n, params.temperature, params.top_p, params.top_k) == (1, 1.0, 1.0, 0)
    assert (params.min_p, params.seed, params.max_tokens) == (0.0, None, 256)
    assert (params.skip_special_tokens, params.repetition_penalty) == (True, 1.0)


def test_every_field_is_documented() -> None:
    for name in NAMES:
        assert f"\n        {name}: " in (SamplingParams.__doc__ or ""), name


def test_help_shows_the_parameters() -> None:
    assert list(inspect.signature(SamplingParams).parameters) == NAMES


GOOD: list[dict[str, Any]] = [
    {"temperature": 0},
    {"temperature": 2.5, "top_p": 1, "top_k": 40, "min_p": 0.05},
    {"seed": 0, "max_tokens": None},
    {"seed": 2**64 - 1, "max_tokens": 1},
    {"stop": "x", "stop_token_ids": [0, 2**32 - 1], "ignore_eos": True},
    {"stop": ["a", "\n"], "logprobs": 0},
    {"n": 2, "min_tokens": 1, "include_stop_str_in_output": True, "skip_special_tokens": False},
    {"presence_penalty": 0.5, "frequency_penalty": -0.5, "repetition_penalty": 1.1},
    {"logit_bias": {3: 1.0}, "allowed_token_ids": [1], "bad_words": ["x"]},
    {"prompt_logprobs": 0, "prediction": "text"},
]


@pytest.mark.parametrize("given", GOOD)
def test_good_values_pass(given: dict[str, Any]) -> None:
    params = SamplingParams(**given)
    assert pickle.loads(pickle.dumps(params)) == params
    assert copy.deepcopy(params) == params
    assert replace(params) == params


def test_values_reach_their_final_form() -> None:
    params = SamplingParams(top_k=-1, stop="x", stop_token_ids=[3], temperature=1)
    assert params.top_k == 0
    assert params.stop == ("x",)
    assert params.stop_token_ids == (3,)
    assert type(params.temperature) is float
    assert SamplingParams(temperature=0).greedy
    assert not params.greedy


def test_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        SamplingParams().temperature = 0  # type: ignore[misc]


BAD: list[tuple[str, Any]] = [
    ("n", 0),
    ("n", 1025),
    ("n", True),
    ("n", 1.0),
    ("temperature", -0.1),
    ("temperature", math.nan),
    ("temperature", math.inf),
    ("temperature", "1"),
    ("temperature", None),
    ("temperature", True),
    ("temperature", 10**400),
    ("top_p", 0),
    ("top_p", 1.01),
    ("top_p", math.nan),
    ("top_k", -2),
    ("top_k", 1.5),
    ("min_p", -0.1),
    ("min_p", 1.1),
    ("seed", -1),
    ("seed", 2**64),
    ("seed", "7"),
    ("max_tokens", 0),
    ("max_tokens", -1),
    ("max_tokens", 2.0),
    ("min_tokens", -1),
    ("stop", ""),
    ("stop", ["a", ""]),
    ("stop", [1]),
    ("stop", 3),
    ("stop", "x" * 65537),
    ("stop", ["ä" * 20000, "b" * 30000]),
    ("stop_token_ids", [-1]),
    ("stop_token_ids", [2**32]),
    ("stop_token_ids", [1.0]),
    ("stop_token_ids", 5),
    ("stop_token_ids", "5"),
    ("ignore_eos", 1),
    ("ignore_eos", None),
    ("presence_penalty", 2.5),
    ("frequency_penalty", math.nan),
    ("repetition_penalty", 0),
    ("logit_bias", [1]),
    ("logit_bias", {-1: 1.0}),
    ("logit_bias", {1: math.inf}),
    ("allowed_token_ids", [True]),
    ("bad_words", [""]),
    ("logprobs", -2),
    ("logprobs", -1),
    ("prompt_logprobs", -1),
    ("logprobs", True),
    ("logprobs", 21),
    ("max_tokens", 2**32),
    ("prompt_logprobs", 0.5),
    ("prediction", ""),
    ("prediction", b"x"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}.*: found .*, expected ") as caught:
        SamplingParams(**{name: value})  # type: ignore[arg-type]
    assert isinstance(caught.value, SpecdecError)
    assert isinstance(caught.value, ValueError)
    assert not isinstance(caught.value, NotSupportedYetError)


def test_every_field_has_a_bad_value() -> None:
    assert {name for name, _ in BAD} >= set(NAMES) - {
        "include_stop_str_in_output",
        "skip_special_tokens",
    }


def test_min_tokens_above_max_tokens() -> None:
    with pytest.raises(ConfigError, match=r"min_tokens: found 5 .*max_tokens=4"):
        SamplingParams(min_tokens=5, max_tokens=4)


def test_an_unknown_name_suggests_the_near_one() -> None:
    with pytest.raises(ConfigError, match=r"no parameter 'temprature'.*did you mean 'temperature'"):
        SamplingParams(temprature=0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("n_predict", "max_tokens"),
        ("stop_strings", "stop"),
        ("do_sample", "temperature"),
        ("TEMPERATURE", "temperature"),
    ],
)
def test_names_of_other_libraries_lead_to_ours(name: str, here: str) -> None:
    given: dict[str, Any] = {name: 1}
    with pytest.raises(ConfigError, match=f"did you mean '{here}'"):
        SamplingParams(**given)


def test_positions_are_refused() -> None:
    with pytest.raises(ConfigError, match="by name"):
        SamplingParams(0.5)  # type: ignore[call-arg, arg-type]
