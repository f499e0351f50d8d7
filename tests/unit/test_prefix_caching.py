"""Prompts that begin alike are read once, and the answers tell it; the text is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specdec_rs as sd

LONG: Any = {"prompt_token_ids": [7 + i * i % 90 for i in range(200)]}
SHORTER: Any = {"prompt_token_ids": LONG["prompt_token_ids"][:150]}
GREEDY = sd.SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)
SEEDED = sd.SamplingParams(seed=5, max_tokens=24, ignore_eos=True)


@pytest.mark.parametrize("params", [GREEDY, SEEDED], ids=["greedy", "seeded"])
@pytest.mark.parametrize("config", [None, "auto", "draft_model"])
def test_what_was_read_is_not_read_again(
    tiny: Path, cook: Any, params: sd.SamplingParams, config: Any
) -> None:
    if config == "draft_model":
        config = {"method": "draft_model", "model": cook(layers=1)}
    with sd.LLM(tiny, speculative_config=config, enable_prefix_caching=False) as llm:
        cold = [llm.generate(p, params, use_tqdm=False)[0] for p in (LONG, SHORTER, LONG)]
        assert llm.get_metrics().prefix_cache_hits == 0
    with sd.LLM(tiny, speculative_config=config) as llm:
        warm = [llm.generate(p, params, use_tqdm=False)[0] for p in (LONG, SHORTER, LONG)]
        metrics = llm.get_metrics()
    assert [output.outputs for output in warm] == [output.outputs for output in cold]
    assert [output.num_cached_tokens for output in cold] == [0, 0, 0]
    assert [output.num_cached_tokens for output in warm] == [0, 128, 192]
    assert (metrics.prefix_cache_queries, metrics.prefix_cache_hits) == (550, 320)
    assert metrics.num_preemptions == 0


def test_log_probabilities_of_a_known_prompt(tiny: Path) -> None:
    params = sd.SamplingParams(temperature=0, max_tokens=4, prompt_logprobs=1)
    with sd.LLM(tiny) as llm:
        first, again = (llm.generate(LONG, params, use_tqdm=False)[0] for _ in range(2))
    assert again.prompt_logprobs == first.prompt_logprobs
    assert again.num_cached_tokens == 0


def test_several_answers_share_their_prompt(tiny: Path) -> None:
    params = sd.SamplingParams(n=3, seed=1, max_tokens=8, ignore_eos=True)
    with sd.LLM(tiny) as llm:
        before = llm.generate(LONG, params, use_tqdm=False)[0]
        after = llm.generate(LONG, params, use_tqdm=False)[0]
    assert after.outputs == before.outputs
    assert after.num_cached_tokens == 192


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_the_option_is_a_flag(value: Any) -> None:
    with pytest.raises(sd.ConfigError, match="enable_prefix_caching: found"):
        sd.LLM("/nowhere/model.gguf", enable_prefix_caching=value)
