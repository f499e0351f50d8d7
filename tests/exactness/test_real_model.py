"""On a real model, speculative text is plain text, token for token: greedy, and with a seed.

Plain answers come from an engine without speculation, one prompt at a time. Speculative ones come
alone and all together, for chains and trees of several widths.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import specdec_rs as sd

CODE = """def mean(values):
    total = 0.0
    for value in values:
        total = total + value
    return total / len(values)


def variance(values):
    center = mean(values)
    total = 0.0
    for value in values:
"""

PROMPTS = [
    "Count: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5,",
    CODE,
    (
        "<|im_start|>user\nSay three times: The river is wide. 河很宽。 🙂<|im_end|>\n"
        "<|im_start|>assistant\n"
    ),
    "Roses are red, violets are blue, roses are",
]

TOKENS = 40
GREEDY = sd.SamplingParams(temperature=0, max_tokens=TOKENS)
SEEDED = [
    sd.SamplingParams(temperature=1.0, seed=seed, top_p=top_p, max_tokens=TOKENS)
    for seed, top_p in ((0, 1.0), (1, 0.9), (2, 0.8), (2**64 - 1, 1.0))
]
# Every prompt greedily, and every prompt with a seed.
REQUESTS = [(prompt, GREEDY) for prompt in PROMPTS] + list(zip(PROMPTS, SEEDED, strict=True))


@pytest.fixture(scope="module")
def plain(smollm2: Path) -> list[list[sd.CompletionOutput]]:
    with sd.LLM(smollm2, speculative_config=None) as llm:
        return [llm.generate(p, params, use_tqdm=False)[0].outputs for p, params in REQUESTS]


@pytest.fixture(scope="module", params=[(1, 1), (4, 1), (8, 1), (4, 2), (8, 3)], ids=str)
def speculative(smollm2: Path, request: pytest.FixtureRequest) -> Iterator[sd.LLM]:
    width, branching = request.param
    config = {
        "method": "ngram",
        "num_speculative_tokens": width,
        "branching_factor": branching,
        "prompt_lookup_min": 1,
        "prompt_lookup_max": 4,
    }
    with sd.LLM(smollm2, speculative_config=config) as llm:
        yield llm


def counts(outputs: list[sd.RequestOutput]) -> tuple[int, int]:
    """Tokens accepted, and steps that rejected one."""
    stats = [output.metrics.speculative_decoding for output in outputs]
    accepted = sum(each.num_accepted_draft_tokens for each in stats if each)
    rejected = sum(each.draft_stop_reasons["rejected"] for each in stats if each)
    return accepted, rejected


def test_alone(speculative: sd.LLM, plain: list[list[sd.CompletionOutput]]) -> None:
    outputs = [
        speculative.generate(prompt, params, use_tqdm=False)[0] for prompt, params in REQUESTS
    ]
    assert [output.outputs for output in outputs] == plain
    for kind in (outputs[:4], outputs[4:]):
        accepted, rejected = counts(kind)
        assert accepted > 0
        assert rejected > 0


def test_together(speculative: sd.LLM, plain: list[list[sd.CompletionOutput]]) -> None:
    prompts, params = zip(*REQUESTS, strict=True)
    outputs = speculative.generate(list(prompts), list(params), use_tqdm=False)
    assert [output.outputs for output in outputs] == plain
    accepted, rejected = counts(outputs)
    assert accepted > 0
    assert rejected > 0


def test_streamed(speculative: sd.LLM, plain: list[list[sd.CompletionOutput]]) -> None:
    for (prompt, params), answers in zip(REQUESTS, plain, strict=True):
        chunks = list(speculative.stream(prompt, params))
        assert [token for chunk in chunks for token in chunk.token_ids] == answers[0].token_ids
        assert "".join(chunk.text for chunk in chunks) == answers[0].text
