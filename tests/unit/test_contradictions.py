"""Parameters that are good by themselves and leave nothing together."""

from __future__ import annotations

from pathlib import Path

import pytest

import specdec_rs as sd


def test_a_request_that_forbids_everything_is_told_so(tiny: Path) -> None:
    with sd.LLM(tiny) as llm:
        tokenizer = llm.get_tokenizer()
        [token] = tokenizer.encode("b", add_special_tokens=False)
        params = sd.SamplingParams(allowed_token_ids=[token], bad_words=["b"])
        with pytest.raises(sd.ConfigError, match=r"leave no token.*allowed_token_ids"):
            llm.generate("a", params, use_tqdm=False)
        # Only that request failed.
        assert llm.generate("a", sd.SamplingParams(max_tokens=1), use_tqdm=False)[0].finished
