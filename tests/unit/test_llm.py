"""`LLM` on a real model: shapes of what goes in and out."""

from __future__ import annotations

import pytest

import specdec_rs as sd

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def llm(smollm2: str) -> sd.LLM:
    return sd.LLM(smollm2)


def test_outputs_are_complete(llm: sd.LLM) -> None:
    params = sd.SamplingParams(temperature=0, max_tokens=6)
    (output,) = llm.generate("The capital of France is", params)
    (answer,) = output.outputs
    assert output.prompt == "The capital of France is"
    assert output.prompt_token_ids == llm.get_tokenizer().encode(output.prompt)
    assert (answer.finish_reason, len(answer.token_ids), answer.index) == ("length", 6, 0)
    assert answer.text == llm.get_tokenizer().decode(answer.token_ids)
    assert output.metrics.speculative_decoding is not None
