"""A second model drafts: the text stays plain, the pair is checked, the memory is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import specdec_rs as sd

# Half of the target's layers: often right, often wrong.
DRAFT: dict[str, Any] = {"layers": 1}
PROMPTS = ["the other day in the", "ab ab ab ab", "x"]
GREEDY = sd.SamplingParams(temperature=0, max_tokens=40, ignore_eos=True)
SEEDED = [sd.SamplingParams(seed=seed, max_tokens=40, ignore_eos=True) for seed in range(3)]

Cook = Any


@pytest.fixture(scope="module")
def draft(cook: Cook) -> Path:
    path: Path = cook(**DRAFT)
    return path


@pytest.fixture(scope="module")
def plain(tiny: Path) -> list[list[sd.CompletionOutput]]:
    with sd.LLM(tiny, speculative_config=None) as llm:
        greedy = llm.generate(PROMPTS, GREEDY, use_tqdm=False)
        seeded = llm.generate(PROMPTS, SEEDED, use_tqdm=False)
    return [output.outputs for output in greedy + seeded]


@pytest.mark.parametrize(
    "config",
    [
        {"method": "draft_model", "num_speculative_tokens": 3},
        {"method": "draft_model", "draft_sample_method": "greedy"},
        {"method": "draft_model", "num_speculative_tokens": 6, "branching_factor": 2},
        {"method": "auto", "num_speculative_tokens": 8, "prompt_lookup_min": 1},
    ],
    ids=str,
)
def test_the_text_is_plain(
    tiny: Path,
    draft: Path,
    config: dict[str, Any],
    plain: list[list[sd.CompletionOutput]],
) -> None:
    with sd.LLM(tiny, speculative_config={**config, "model": draft}) as llm:
        greedy = llm.generate(PROMPTS, GREEDY, use_tqdm=False)
        seeded = llm.generate(PROMPTS, SEEDED, use_tqdm=False)
        metrics, memory = llm.get_metrics(), llm.memory
    assert [output.outputs for output in greedy + seeded] == plain
    for outputs in (greedy, seeded):
        stats = [output.metrics.speculative_decoding for output in outputs]
        drafted = sum(each.num_draft_tokens for each in stats if each)
        accepted = sum(each.num_accepted_draft_tokens for each in stats if each)
        assert 0 < accepted < drafted
    assert metrics.draft_time > 0
    assert metrics.num_draft_failures == 0
    assert 0 < memory.draft_weights < memory.weights
    assert memory.draft_kv_cache > 0


def test_a_draft_quantised_at_load_is_smaller_and_the_text_is_plain(
    tiny: Path, draft: Path, plain: list[list[sd.CompletionOutput]]
) -> None:
    sizes = {}
    for quantization in (None, "q8_0", "q4_0"):
        config = {"method": "draft_model", "model": draft, "quantization": quantization}
        with sd.LLM(tiny, speculative_config=config) as llm:
            outputs = llm.generate(PROMPTS, GREEDY, use_tqdm=False)
            sizes[quantization] = llm.memory.draft_weights
        assert [output.outputs for output in outputs] == plain[:3]
    assert sizes["q4_0"] < sizes["q8_0"] < sizes[None]


@pytest.mark.parametrize("method", ["standard", "block", "traversal", "coupled", "auto"])
def test_a_draft_equal_to_its_target_is_always_accepted(tiny: Path, method: str) -> None:
    config = {"method": "draft_model", "model": tiny, "rejection_sample_method": method}
    params = sd.SamplingParams(max_tokens=40, temperature=0.8, top_p=0.9, ignore_eos=True)
    with sd.LLM(tiny, speculative_config=config) as llm:
        for output in llm.generate(PROMPTS, params, use_tqdm=False):
            stats = output.metrics.speculative_decoding
            assert stats is not None
            assert stats.draft_stop_reasons["rejected"] == 0
            assert stats.num_accepted_draft_tokens > 20


def test_a_draft_that_speaks_another_language(tiny: Path, cook: Cook) -> None:
    other = cook(arch="qwen2")
    with pytest.raises(
        sd.ModelLoadError, match=r"token 0 is .* in the model and .* draft"
    ) as caught:
        sd.LLM(tiny, speculative_config={"method": "draft_model", "model": other})
    assert caught.value.__notes__ == [f"while loading {tiny} with the draft model {other}"]


def test_a_missing_draft(tiny: Path) -> None:
    with pytest.raises(sd.ModelNotFoundError, match="nowhere"):
        sd.LLM(tiny, speculative_config={"method": "draft_model", "model": "/nowhere/d.gguf"})


def test_a_draft_with_a_shorter_context(
    tiny: Path, cook: Cook, plain: list[list[sd.CompletionOutput]]
) -> None:
    config = {
        "method": "draft_model",
        "model": cook(**DRAFT, context=24),
        "num_speculative_tokens": 3,
    }
    with sd.LLM(tiny, speculative_config=config) as llm:
        outputs = llm.generate(PROMPTS, GREEDY, use_tqdm=False)
    assert [output.outputs for output in outputs] == plain[:3]
    for output in outputs:
        stats = output.metrics.speculative_decoding
        assert stats is not None
        assert stats.num_draft_tokens > 0
        assert stats.draft_stop_reasons["no_draft"] > 10


@pytest.mark.parametrize(("rows", "draft_rows"), [(2000, 2010), (2010, 2000)])
def test_padded_vocabularies(cook: Cook, rows: int, draft_rows: int) -> None:
    target = cook(vocab=rows)
    config = {"method": "draft_model", "model": cook(**DRAFT, vocab=draft_rows)}
    # Ids that only pad a table are no text, but a prompt may hold them.
    prompts: list[Any] = [*PROMPTS, {"prompt_token_ids": [5, rows - 1, 6]}]
    with sd.LLM(target, speculative_config=None) as llm:
        expected = llm.generate(prompts, GREEDY, use_tqdm=False)
    with sd.LLM(target, speculative_config=config) as llm:
        outputs = llm.generate(prompts, GREEDY, use_tqdm=False)
        assert llm.get_metrics().num_draft_failures == 0
    assert [output.outputs for output in outputs] == [output.outputs for output in expected]
    stats = outputs[0].metrics.speculative_decoding
    assert stats is not None
    assert stats.num_draft_tokens > 0
