"""Every sampling parameter times every drafter: the answer is the plain one, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import specdec_rs as sd

PROMPTS = ["the other day in the", "ab ab ab ab ab", "and then an order"]

# One value at which each parameter does something on the tiny model.
VALUES: dict[str, Any] = {
    "n": 3,
    "temperature": 0.7,
    "top_p": 0.8,
    "top_k": 7,
    "min_p": 0.1,
    "seed": 11,
    "max_tokens": 17,
    "min_tokens": 20,
    "stop": ["e", "a"],
    "stop_token_ids": list(range(40, 80)),
    "ignore_eos": False,
    "include_stop_str_in_output": True,
    "skip_special_tokens": False,
    "presence_penalty": 2,
    "frequency_penalty": 1.2,
    "repetition_penalty": 1.4,
    "logit_bias": {70: 4.0, 71: -9.0, 72: 3.5},
    "allowed_token_ids": [0, 70, 71, 72, 73, 74, 280, 281],
    "bad_words": ["e", "an", "the"],
    "logprobs": 3,
    "prompt_logprobs": 2,
    "prediction": "the other day in the order of the other day",
}
# What gives a parameter something to act on.
BESIDE: dict[str, dict[str, Any]] = {
    "temperature": {"seed": 9},
    "min_tokens": {"stop_token_ids": list(range(3, 200)), "stop": ["e", "a"]},
    "include_stop_str_in_output": {"stop": ["e", "a", "t"]},
    "skip_special_tokens": {"allowed_token_ids": [0, 1, 2, 70], "ignore_eos": True},
    "ignore_eos": {"logit_bias": {0: 6.0}},
}

DRAFTERS: dict[str, dict[str, Any]] = {
    "ngram chain": {"method": "ngram", "prompt_lookup_min": 1},
    "ngram tree": {
        "method": "ngram",
        "prompt_lookup_min": 1,
        "num_speculative_tokens": 6,
        "branching_factor": 3,
    },
    "model chain": {"method": "draft_model"},
    "model tree": {"method": "draft_model", "num_speculative_tokens": 6, "branching_factor": 2},
    "both": {"method": ["draft_model", "ngram"], "num_speculative_tokens": 6},
}


def asks() -> list[tuple[str, str, sd.SamplingParams]]:
    """Field, prompt and parameters, greedy and seeded."""
    found = []
    for i, (name, value) in enumerate(VALUES.items()):
        for base in ({"temperature": 0}, {"temperature": 1, "seed": 5}):
            given: dict[str, Any] = {
                "ignore_eos": True,
                "max_tokens": 80,
                **base,
                **BESIDE.get(name, {}),
            }
            params = sd.SamplingParams(**{**given, name: value})
            found.append((name, PROMPTS[i % len(PROMPTS)], params))
    return found


ASKS = asks()


def answers(llm: sd.LLM) -> list[sd.RequestOutput]:
    return llm.generate([a[1] for a in ASKS], [a[2] for a in ASKS], use_tqdm=False)


@pytest.fixture(scope="module")
def plain(tiny: Path) -> list[sd.RequestOutput]:
    with sd.LLM(tiny, speculative_config=None) as llm:
        return answers(llm)


@pytest.fixture(scope="module", params=DRAFTERS, ids=str)
def speculative(
    request: pytest.FixtureRequest, tiny: Path, cook: Any
) -> Iterator[list[sd.RequestOutput]]:
    config = dict(DRAFTERS[request.param])
    if "draft_model" in config["method"]:
        config["model"] = cook(layers=1)
    with sd.LLM(tiny, speculative_config=config) as llm:
        yield answers(llm)


def test_every_field_has_a_value() -> None:
    assert set(VALUES) == {field.name for field in fields(sd.SamplingParams)}


def test_every_field_does_something(tiny: Path, plain: list[sd.RequestOutput]) -> None:
    """A comparison of two answers that both ignore a field would prove nothing."""
    default = sd.SamplingParams()
    with sd.LLM(tiny, speculative_config=None) as llm:
        for (name, prompt, params), output in zip(ASKS, plain, strict=True):
            if name in {"prediction", "temperature", "seed"}:
                continue
            if params.greedy and name in {"top_p", "top_k", "min_p", "n"}:
                continue
            neutral: Any = True if name == "ignore_eos" else getattr(default, name)
            without = replace(params, **{name: neutral})
            (other,) = llm.generate(prompt, without, use_tqdm=False)
            same = (other.outputs, other.prompt_logprobs) == (
                output.outputs,
                output.prompt_logprobs,
            )
            assert not same, name


@pytest.mark.parametrize("which", range(len(ASKS)), ids=lambda i: f"{ASKS[i][0]}-{i % 2}")
def test_the_answer_is_the_plain_one(
    which: int, speculative: list[sd.RequestOutput], plain: list[sd.RequestOutput]
) -> None:
    ours, expected = speculative[which], plain[which]
    assert ours.outputs == expected.outputs
    assert ours.prompt_logprobs == expected.prompt_logprobs


def test_drafts_were_accepted_and_rejected(speculative: list[sd.RequestOutput]) -> None:
    stats = [output.metrics.speculative_decoding for output in speculative]
    assert sum(each.num_accepted_draft_tokens for each in stats if each) > 0
    assert sum(each.draft_stop_reasons["rejected"] for each in stats if each) > 0


def test_several_answers(plain: list[sd.RequestOutput]) -> None:
    greedy, seeded = (plain[i] for i, ask in enumerate(ASKS) if ask[0] == "n")
    assert [answer.index for answer in greedy.outputs] == [0, 1, 2]
    assert len({tuple(answer.token_ids) for answer in greedy.outputs}) == 1
    assert len({tuple(answer.token_ids) for answer in seeded.outputs}) == 3


def test_prompt_logprobs_are_those_of_the_same_text_generated(tiny: Path) -> None:
    with sd.LLM(tiny, speculative_config=None) as llm:
        params = sd.SamplingParams(temperature=0, max_tokens=30, logprobs=2, ignore_eos=True)
        (said,) = llm.generate(PROMPTS[0], params, use_tqdm=False)
        answer = said.outputs[0]
        whole = [*said.prompt_token_ids, *answer.token_ids]
        asked = sd.SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=2)
        (heard,) = llm.generate({"prompt_token_ids": whole}, asked, use_tqdm=False)
    assert heard.prompt_logprobs is not None
    assert len(heard.prompt_logprobs) == len(whole)
    assert heard.prompt_logprobs[0] is None
    assert heard.prompt_logprobs[len(said.prompt_token_ids) :] == answer.logprobs


def test_a_prediction_is_drafted_from(tiny: Path) -> None:
    config = {"method": "ngram", "prompt_lookup_min": 2}
    params = sd.SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)
    with sd.LLM(tiny, speculative_config=config) as llm:
        (free,) = llm.generate(PROMPTS[0], params, use_tqdm=False)
        text = llm.get_tokenizer().decode(free.outputs[0].token_ids)
        (told,) = llm.generate(PROMPTS[0], replace(params, prediction=text), use_tqdm=False)
    assert told.outputs == free.outputs
    drafted = [output.metrics.speculative_decoding for output in (free, told)]
    assert drafted[0] is not None
    assert drafted[1] is not None
    assert drafted[1].num_draft_tokens > drafted[0].num_draft_tokens


def test_a_stream_is_one_answer(tiny: Path) -> None:
    with sd.LLM(tiny) as llm, pytest.raises(sd.ConfigError, match=r"^n: found 2 .*stream"):
        llm.stream("a", sd.SamplingParams(n=2))
