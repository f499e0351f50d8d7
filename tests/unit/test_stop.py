"""Where an answer ends: stop strings and the first tokens, on the real model."""

from __future__ import annotations

import pytest

import specdec_rs as sd

PROMPT = "Count: one, two, three,"


def answer(llm: sd.LLM, **params: object) -> sd.CompletionOutput:
    asked = sd.SamplingParams(temperature=0, max_tokens=24, **params)  # type: ignore[arg-type]
    [output] = llm.generate(PROMPT, asked, use_tqdm=False)
    return output.outputs[0]


@pytest.mark.parametrize("streamed", [False, True])
def test_min_tokens_holds_back_stop_strings(llm: sd.LLM, streamed: bool) -> None:
    free = answer(llm, ignore_eos=True)
    comma = answer(llm, ignore_eos=True, stop=",")
    first = len(comma.token_ids)
    assert comma.stop_reason == ","
    assert first < 12
    for least in (first - 1, first, 12):
        params = sd.SamplingParams(
            temperature=0, max_tokens=24, ignore_eos=True, stop=",", min_tokens=least
        )
        if streamed:
            *_, last = llm.stream(PROMPT, params)
            assert last.output is not None
            [held] = last.output.outputs
        else:
            held = answer(llm, ignore_eos=True, stop=",", min_tokens=least)
        assert len(held.token_ids) > least
        assert held.token_ids == free.token_ids[: len(held.token_ids)]
        assert free.text.startswith(held.text)
        assert (held == comma) == (least < first)
