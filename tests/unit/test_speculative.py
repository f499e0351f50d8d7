"""SpeculativeConfig: all that is not understood is refused before a model is touched."""

from __future__ import annotations

import inspect
import math
import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from specdec_rs import ConfigError, NotSupportedYetError, SpecdecError, SpeculativeConfig

NAMES = [field.name for field in fields(SpeculativeConfig)]


def test_what_the_llm_takes() -> None:
    assert SpeculativeConfig.of(None) is None
    assert SpeculativeConfig.of("auto") == SpeculativeConfig()
    config = SpeculativeConfig(method="ngram", num_speculative_tokens=4)
    assert SpeculativeConfig.of(config) is config
    assert SpeculativeConfig.of({"method": "ngram", "num_speculative_tokens": 4}) == config
    assert SpeculativeConfig.of({}) == SpeculativeConfig()
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize("given", [True, False, 0, 4, "ngram", "off", "", ["ngram"], object()])
def test_anything_else_is_refused(given: object) -> None:
    with pytest.raises(ConfigError, match=r"^speculative_config: found ") as caught:
        SpeculativeConfig.of(given)
    assert isinstance(caught.value, SpecdecError)
    assert isinstance(caught.value, ValueError)


GOOD: list[dict[str, Any]] = [
    {"method": "auto"},
    {"method": ["ngram"]},
    {"method": "ngram", "num_speculative_tokens": 1, "branching_factor": 1},
    {"num_speculative_tokens": 16, "branching_factor": 3, "tree_depth": 8},
    {"prompt_lookup_min": 2, "prompt_lookup_max": 2},
    {"rejection_sample_method": "standard", "adaptive": False},
    {"rejection_sample_method": "coupled", "model": None},
    {"rejection_sample_method": "block"},
    {"method": "draft_model", "model": "qwen2.5-coder-0.5b", "draft_sample_method": "greedy"},
    {"method": ["ngram", "draft_model"], "model": Path("draft.gguf"), "prompt_lookup_min": 1},
    {"model": "draft.gguf", "branching_factor": 2, "rejection_sample_method": "traversal"},
]


@pytest.mark.parametrize("given", GOOD)
def test_good_values_pass(given: dict[str, Any]) -> None:
    assert SpeculativeConfig.of(given) == SpeculativeConfig(**given)


def test_one_end_of_the_lookup_window_is_both() -> None:
    low = SpeculativeConfig(prompt_lookup_min=3)
    assert (low.prompt_lookup_min, low.prompt_lookup_max) == (3, 3)
    high = SpeculativeConfig(prompt_lookup_max=4)
    assert (high.prompt_lookup_min, high.prompt_lookup_max) == (4, 4)


BAD: list[tuple[str, Any]] = [
    ("method", "n-gram"),
    ("method", None),
    ("method", []),
    ("method", ["ngram", "x"]),
    ("method", ["ngram", "ngram"]),
    ("method", ["draft_model", "ngram", "draft_model"]),
    ("method", 3),
    ("model", 3),
    ("model", ""),
    ("num_speculative_tokens", 0),
    ("num_speculative_tokens", 129),
    ("num_speculative_tokens", 4.0),
    ("num_speculative_tokens", "4"),
    ("num_speculative_tokens", True),
    ("prompt_lookup_min", 0),
    ("prompt_lookup_max", -1),
    ("suffix_decoding_max_tree_depth", 0),
    ("suffix_decoding_max_cached_requests", -1),
    ("suffix_decoding_max_spec_factor", math.nan),
    ("suffix_decoding_min_token_prob", 1.5),
    ("draft_sample_method", "random"),
    ("rejection_sample_method", "strict"),
    ("rejection_sample_method", None),
    ("tree_depth", 0),
    ("branching_factor", 0),
    ("quantization", ""),
    ("shortlist", 0),
    ("adaptive", 1),
    ("adaptive", "yes"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}.*: found ") as caught:
        SpeculativeConfig.of({name: value})
    assert not isinstance(caught.value, NotSupportedYetError)


def test_every_field_has_a_bad_value_and_a_line_of_documentation() -> None:
    assert {name for name, _ in BAD} == set(NAMES)
    for name in NAMES:
        assert f"\n        {name}: " in (SpeculativeConfig.__doc__ or ""), name
    assert list(inspect.signature(SpeculativeConfig).parameters) == NAMES


def test_the_lookup_window_must_not_be_empty() -> None:
    with pytest.raises(ConfigError, match=r"prompt_lookup_min: found 5 .*prompt_lookup_max=3"):
        SpeculativeConfig(prompt_lookup_min=5, prompt_lookup_max=3)


def test_sources_in_their_order() -> None:
    assert SpeculativeConfig().sources == ("ngram",)
    assert SpeculativeConfig(model="d").sources == ("draft_model", "ngram")
    assert SpeculativeConfig(method="draft_model", model="d").sources == ("draft_model",)
    both = SpeculativeConfig(method=["ngram", "draft_model"], model="d")
    assert both.sources == ("draft_model", "ngram")


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"method": "draft_model"}, r"^model: found None, .*'draft_model'"),
    ({"method": "ngram", "model": "d"}, r"^model: found 'd'"),
    (
        {"draft_sample_method": "greedy"},
        r"^draft_sample_method: found 'greedy' .*a draft model drafts, and none is given",
    ),
    (
        {"quantization": "q4_0"},
        r"^quantization: found 'q4_0' .*quantises a draft model, and none is given.*LLM",
    ),
    ({"method": "ngram", "quantization": "q4_0"}, r"^quantization: .* with method='ngram'"),
    ({"method": "draft_model", "model": "d", "prompt_lookup_min": 2}, r"^prompt_lookup_min: "),
    ({"method": "draft_model", "model": "d", "prompt_lookup_max": 3}, r"^prompt_lookup_max: "),
    ({"rejection_sample_method": "block", "branching_factor": 2}, r"^rejection_sample_method: "),
    ({"rejection_sample_method": "block", "model": "d"}, r"^rejection_sample_method: .*traversal"),
]


@pytest.mark.parametrize(("given", "message"), CONTRADICTIONS)
def test_what_contradicts_itself_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SpeculativeConfig.of(given)


NOT_YET: list[tuple[str, Any]] = [
    *(("method", m) for m in ("suffix", "recycling", "medusa", "eagle", "eagle3")),
    ("method", ["ngram", "suffix"]),
    ("suffix_decoding_max_tree_depth", 24),
    ("suffix_decoding_max_cached_requests", 0),
    ("suffix_decoding_max_spec_factor", 1.0),
    ("suffix_decoding_min_token_prob", 0.1),
    ("shortlist", 8192),
    ("adaptive", True),
]


@pytest.mark.parametrize(("name", "value"), NOT_YET)
def test_what_is_missing_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(NotSupportedYetError, match=rf"^{name}=.* is not yet supported") as caught:
        SpeculativeConfig.of({name: value})
    assert caught.value.field == name


@pytest.mark.parametrize("key", ["num_spec_tokens", "prompt_lookup_mx", 3])
def test_an_unknown_name_is_refused(key: object) -> None:
    with pytest.raises(ConfigError, match="speculative_config has no parameter"):
        SpeculativeConfig.of({key: 1})


def test_an_unknown_name_suggests_the_near_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'num_speculative_tokens'"):
        SpeculativeConfig(num_speculativ_tokens=4)  # type: ignore[call-arg]
