"""Mistakes in the arguments of `LLM` and of `chat` that need no model, or only a small one."""

from __future__ import annotations

from typing import Any

import pytest

import specdec_rs as sd


def test_an_unknown_argument_is_a_config_error_with_the_nearest_name() -> None:
    wrong: dict[str, Any] = {"max_model_length": 10}
    with pytest.raises(sd.ConfigError, match="did you mean 'max_model_len'"):
        sd.LLM("smollm2-135m", **wrong)


@pytest.mark.model
def test_text_parts_of_a_message_are_its_text(llm: sd.LLM) -> None:
    params = sd.SamplingParams(temperature=0, max_tokens=4)
    parts = [{"type": "text", "text": "Say"}, {"type": "text", "text": "hello."}]
    [as_parts] = llm.chat([{"role": "user", "content": parts}], params, use_tqdm=False)
    [as_text] = llm.chat([{"role": "user", "content": "Say\nhello."}], params, use_tqdm=False)
    assert as_parts.prompt_token_ids == as_text.prompt_token_ids


@pytest.mark.model
@pytest.mark.parametrize("content", [[], [{"type": "image_url"}], 5, [{"type": "text", "text": 1}]])
def test_other_content_is_refused_by_name(llm: sd.LLM, content: object) -> None:
    with pytest.raises(sd.ConfigError, match=r"messages\[0\]\['content'\]"):
        llm.chat([{"role": "user", "content": content}], use_tqdm=False)
