"""`memory_budget`: a size in many spellings, kept, and refused when it is too small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specdec_rs as sd
from specdec_rs import _checks as check

MIB = 1 << 20
GREEDY = sd.SamplingParams(temperature=0, max_tokens=120, ignore_eos=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (1, 1),
        (1 << 33, 1 << 33),
        ("512", None),
        ("100B", 100),
        ("4GiB", 4 << 30),
        ("1.5 GiB", 3 << 29),
        (" 300MiB ", 300 * MIB),
        ("2KiB", 2048),
        ("1TiB", 1 << 40),
        ("1GB", 10**9),
        ("2 MB", 2 * 10**6),
        ("3kB", 3000),
        ("3KB", 3000),
        ("0.1B", None),
        ("0GiB", None),
        ("-1GiB", None),
        ("1kiB", None),
        ("4gib", None),
        ("1e3MB", None),
        ("99999999999TiB", None),
        ("", None),
        (0, None),
        (-5, None),
        (True, None),
        (1.5, None),
        (None, None),
    ],
)
def test_a_size_in_bytes(text: Any, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(sd.ConfigError, match="memory_budget: found"):
            check.size("memory_budget", text)
    else:
        assert check.size("memory_budget", text) == expected


def least(tiny: Path, **options: Any) -> int:
    """The budget that the error for a smaller one asks for."""
    with pytest.raises(sd.MemoryBudgetError) as caught:
        sd.LLM(tiny, memory_budget=1, **options)
    assert isinstance(caught.value, MemoryError)
    words = str(caught.value).split()
    assert words[:6] == ["memory_budget", "is", "1", "bytes,", "but", words[5]]
    return int(words[5])


def test_a_budget_too_small_says_what_is_needed_and_that_is_enough(tiny: Path) -> None:
    needed = least(tiny)
    with sd.LLM(tiny, memory_budget=needed) as llm:
        memory = llm.memory
    assert memory.total <= needed == memory.budget
    assert memory.kv_cache_tokens >= llm.engine.max_model_len
    assert min(memory.weights, memory.kv_cache, memory.activations) > 0
    assert (memory.draft_weights, memory.kv_tokens_lost_to_draft) == (0, 0)
    with pytest.raises(sd.MemoryBudgetError, match="raise the budget or lower max_model_len"):
        sd.LLM(tiny, memory_budget=needed - 1)
    assert least(tiny, max_model_len=64) < needed


def test_without_a_budget_all_requests_have_room(tiny: Path) -> None:
    with sd.LLM(tiny, max_num_seqs=3) as llm:
        assert llm.memory.budget is None
        assert llm.memory.kv_cache_tokens >= 3 * llm.engine.max_model_len


def test_a_draft_that_was_asked_for_takes_its_part(tiny: Path, cook: Any) -> None:
    config = {"method": "draft_model", "model": cook(layers=1)}
    needed = least(tiny, speculative_config=config)
    assert needed > least(tiny)
    with sd.LLM(tiny, memory_budget=needed, speculative_config=config) as llm:
        memory = llm.memory
    assert memory.total <= needed
    assert memory.draft_kv_cache_tokens == memory.kv_cache_tokens
    assert memory.kv_tokens_lost_to_draft > 0
    with pytest.raises(sd.MemoryBudgetError, match="leave the draft model out"):
        sd.LLM(tiny, memory_budget=needed - 1, speculative_config=config)


def test_an_automatic_draft_goes_before_a_request_does(tiny: Path, cook: Any) -> None:
    config = {"method": "auto", "model": cook(layers=1)}
    budget = least(tiny)
    with pytest.warns(UserWarning, match="fewer requests with the draft model"):
        llm = sd.LLM(tiny, memory_budget=budget, speculative_config=config)
    with llm:
        assert llm.memory.draft_left_out
        assert llm.memory.draft_weights == 0
        assert llm.generate("ab ab ab", GREEDY, use_tqdm=False)[0].finished
    with sd.LLM(tiny, memory_budget="1GiB", speculative_config=config) as llm:
        assert not llm.memory.draft_left_out
        assert llm.memory.draft_weights > 0


@pytest.mark.parametrize("method", ["ngram", "draft_model"])
def test_requests_that_give_way_keep_their_text(tiny: Path, cook: Any, method: str) -> None:
    config: dict[str, Any] = {"method": method}
    if method == "draft_model":
        config["model"] = cook(layers=1)
    prompts: list[Any] = [
        {"prompt_token_ids": [9 + (i * 5 + at * at) % 80 for at in range(4 + 20 * i)]}
        for i in range(5)
    ]
    seeded = [sd.SamplingParams(seed=i, max_tokens=120, ignore_eos=True) for i in range(5)]
    with sd.LLM(tiny, speculative_config=None) as llm:
        expected = [llm.generate(prompts, params, use_tqdm=False) for params in (GREEDY, seeded)]
    options: dict[str, Any] = {"max_model_len": 256, "speculative_config": config}
    with sd.LLM(tiny, memory_budget=least(tiny, **options), **options) as llm:
        outputs = [llm.generate(prompts, params, use_tqdm=False) for params in (GREEDY, seeded)]
        total = llm.get_metrics().num_preemptions
    for ours, theirs in zip(outputs, expected, strict=True):
        assert [output.outputs for output in ours] == [output.outputs for output in theirs]
    told = sum(output.metrics.num_preemptions for each in outputs for output in each)
    assert told == total > 0


def test_the_real_model_in_a_budget(smollm2: Path) -> None:
    with sd.LLM(smollm2, max_model_len=1024, memory_budget="250MiB") as llm:
        assert llm.memory.total <= 250 * MIB
        assert 90 * MIB < llm.memory.weights < 110 * MIB
