"""Where an answer ends, and what is reported of it, is the same with and without speculation.

The prompts repeat themselves, so most tokens come from drafts, and ends fall inside of blocks that
were accepted at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import specdec_rs as sd

PROMPTS = [
    "Count: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5,",
    "a b c d e f g a b c d e f g a b c",
    "x = 1\ny = 2\nz = 3\nx = 1\ny = 2\n",
]
GREEDY = sd.SamplingParams(temperature=0, max_tokens=24)
SEEDED = sd.SamplingParams(temperature=0.7, seed=11, max_tokens=24)


def both(
    llm: sd.LLM, plain_llm: sd.LLM, prompts: list[str], params: list[sd.SamplingParams]
) -> tuple[list[sd.CompletionOutput], Counter[str]]:
    """Answers that are the same both ways, and how speculation's steps ended."""
    plain = plain_llm.generate(prompts, params, use_tqdm=False)
    fast = llm.generate(prompts, params, use_tqdm=False)
    assert [output.outputs for output in fast] == [output.outputs for output in plain]
    ends: Counter[str] = Counter()
    for output in fast:
        stats = output.metrics.speculative_decoding
        assert stats is not None
        ends.update(stats.draft_stop_reasons)
        ends["accepted"] += stats.num_accepted_draft_tokens
    return [output.outputs[0] for output in fast], ends


@pytest.mark.parametrize("params", [GREEDY, SEEDED], ids=["greedy", "seeded"])
def test_stop_strings(llm: sd.LLM, plain_llm: sd.LLM, params: sd.SamplingParams) -> None:
    """Every part of up to 6 characters of the answers, wherever it cuts a block or a token."""
    prompts, each = [], []
    for prompt in PROMPTS:
        text = plain_llm.generate(prompt, params, use_tqdm=False)[0].outputs[0].text
        for start in range(2, min(len(text), 40), 3):
            prompts.append(prompt)
            each.append(replace(params, stop=["never said", text[start : start + 1 + start % 6]]))
    answers, ends = both(llm, plain_llm, prompts, each)
    assert ends["finished"] > 5, "no answer ended inside of a drafted block"
    for answer, asked in zip(answers, each, strict=True):
        assert asked.stop is not None
        assert (answer.finish_reason, answer.stop_reason) == ("stop", asked.stop[1])
        assert asked.stop[1] not in answer.text


def test_stop_tokens(llm: sd.LLM, plain_llm: sd.LLM) -> None:
    prompts, each = [], []
    for prompt in PROMPTS:
        tokens = plain_llm.generate(prompt, GREEDY, use_tqdm=False)[0].outputs[0].token_ids
        for token in set(tokens) - set(llm.get_tokenizer().end_token_ids):
            prompts.append(prompt)
            each.append(replace(GREEDY, stop_token_ids=[token]))
    answers, ends = both(llm, plain_llm, prompts, each)
    assert ends["finished"] > 5
    for answer, params in zip(answers, each, strict=True):
        assert params.stop_token_ids is not None
        assert answer.token_ids.index(params.stop_token_ids[0]) == len(answer.token_ids) - 1
        assert (answer.finish_reason, answer.stop_reason) == ("stop", params.stop_token_ids[0])


@pytest.mark.parametrize("params", [GREEDY, SEEDED], ids=["greedy", "seeded"])
def test_every_length(llm: sd.LLM, plain_llm: sd.LLM, params: sd.SamplingParams) -> None:
    prompts = [prompt for prompt in PROMPTS for _ in range(1, 25)]
    each = [replace(params, max_tokens=length) for _ in PROMPTS for length in range(1, 25)]
    answers, ends = both(llm, plain_llm, prompts, each)
    assert ends["accepted"] > 0
    for at in range(0, len(answers), 24):
        longest = answers[at + 23].token_ids
        for length, answer in enumerate(answers[at : at + 24], 1):
            assert answer.token_ids == longest[:length]


@pytest.mark.parametrize("params", [GREEDY, SEEDED], ids=["greedy", "seeded"])
def test_logprobs(llm: sd.LLM, plain_llm: sd.LLM, params: sd.SamplingParams) -> None:
    """To the last bit: rows of a pass do not know each other."""
    each = [replace(params, logprobs=n) for n in (0, 1, 20)]
    answers, ends = both(llm, plain_llm, PROMPTS, each)
    assert ends["accepted"] > 0
    assert ends["rejected"] > 0
    for answer in answers:
        assert answer.logprobs is not None
        assert len(answer.logprobs) == len(answer.token_ids)
        for token, entry in zip(answer.token_ids, answer.logprobs, strict=True):
            assert entry[token].logprob < 0
