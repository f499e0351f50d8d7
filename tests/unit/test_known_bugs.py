"""Faults that users of other implementations reported, as the smallest input that would show them.

`tests/known_bugs.md` says which report each is from; most reports have their test elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import specdec_rs as sd
from tests.scripts import ROOT
from tests.unit.test_every_parameter import DRAFTERS

GREEDY = sd.SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)
SEEDED = [
    sd.SamplingParams(temperature=1, seed=seed, max_tokens=24, ignore_eos=True) for seed in range(4)
]
PROMPT = "ab ab ab ab ab"


@pytest.fixture(scope="module")
def plain(tiny: Path) -> Iterator[sd.LLM]:
    with sd.LLM(tiny, speculative_config=None) as llm:
        yield llm


@pytest.fixture(scope="module", params=DRAFTERS, ids=str)
def drafting(request: pytest.FixtureRequest, tiny: Path, cook: Any) -> Iterator[sd.LLM]:
    config = dict(DRAFTERS[request.param])
    if "draft_model" in config["method"]:
        config["model"] = cook(layers=1)
    with sd.LLM(tiny, speculative_config=config) as llm:
        yield llm


def answers(llm: sd.LLM, prompts: Any, params: Any) -> list[sd.CompletionOutput]:
    return [output.outputs[0] for output in llm.generate(prompts, params, use_tqdm=False)]


def stats_of(output: sd.RequestOutput) -> sd.SpeculativeDecodingStats:
    assert output.metrics.speculative_decoding is not None
    return output.metrics.speculative_decoding


@pytest.mark.parametrize("ids", [[70], [70, 71], [70] * 48, [70, 71] * 24], ids=len)
def test_short_and_periodic_prompts(drafting: sd.LLM, plain: sd.LLM, ids: list[int]) -> None:
    prompt = {"prompt_token_ids": ids}
    for params in (GREEDY, SEEDED[1]):
        assert answers(drafting, prompt, params) == answers(plain, prompt, params)


def test_a_seed_does_not_know_what_ran_before_or_beside(drafting: sd.LLM, plain: sd.LLM) -> None:
    alone = [answers(plain, PROMPT, params)[0] for params in SEEDED]
    assert answers(drafting, PROMPT, SEEDED[0]) == alone[:1]
    answers(drafting, "something else", sd.SamplingParams(max_tokens=7))
    assert answers(drafting, PROMPT, SEEDED[0]) == alone[:1]
    assert answers(drafting, [PROMPT] * 4, SEEDED) == alone


def test_a_token_of_bias_minus_100_never_comes(drafting: sd.LLM, plain: sd.LLM) -> None:
    [free] = answers(plain, PROMPT, GREEDY)
    [(often, _)] = Counter(free.token_ids).most_common(1)
    for base in ({"temperature": 0}, {"temperature": 1, "seed": 2}):
        given: dict[str, Any] = {"max_tokens": 60, "ignore_eos": True, **base}
        params = sd.SamplingParams(logit_bias={often: -100}, **given)
        [answer] = answers(drafting, PROMPT, params)
        assert often not in answer.token_ids
        assert [answer] == answers(plain, PROMPT, params)


def test_min_tokens_counts_tokens_and_not_steps(drafting: sd.LLM) -> None:
    [end, *_] = drafting.get_tokenizer().end_token_ids
    for least in range(6):
        params = sd.SamplingParams(
            temperature=0, max_tokens=24, min_tokens=least, logit_bias={end: 100}
        )
        [answer] = answers(drafting, PROMPT, params)
        assert len(answer.token_ids) == least + 1
        assert answer.token_ids.index(end) == least


def test_a_model_that_drafts_for_itself_is_always_right(tiny: Path, plain: sd.LLM) -> None:
    config = {"method": "draft_model", "model": tiny, "num_speculative_tokens": 3}
    with sd.LLM(tiny, speculative_config=config) as llm:
        for tokens in (4, 24):
            params = sd.SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
            [output] = llm.generate(PROMPT, params, use_tqdm=False)
            assert output.outputs == answers(plain, PROMPT, params)
            stats = stats_of(output)
            assert stats.draft_acceptance_rate == 1
            assert stats.mean_acceptance_length >= 3


def test_a_draft_of_nan_costs_its_drafts_and_nothing_else(
    tiny: Path, cook: Any, plain: sd.LLM
) -> None:
    config = {"method": "draft_model", "model": cook(spread=3e38, tied=False, layers=1)}
    with sd.LLM(tiny, speculative_config=config) as llm:
        for params in (GREEDY, SEEDED[0]):
            assert answers(llm, PROMPT, params) == answers(plain, PROMPT, params)
        assert llm.get_metrics().num_draft_failures > 0


def test_no_text_drafts_for_another(tiny: Path) -> None:
    prompts = [PROMPT, "the other day in the", PROMPT]
    config = {"method": "ngram", "prompt_lookup_min": 1}
    with sd.LLM(tiny, speculative_config=config) as llm:
        alone = [stats_of(llm.generate(p, GREEDY, use_tqdm=False)[0]) for p in prompts]
        together = [stats_of(output) for output in llm.generate(prompts, GREEDY, use_tqdm=False)]
    assert together == alone
    assert alone[0].num_draft_tokens > 0


@pytest.mark.parametrize("room", [1, 2, 8])
def test_a_draft_longer_than_the_context_has_room(tiny: Path, room: int) -> None:
    config = {"method": "ngram", "prompt_lookup_min": 1, "num_speculative_tokens": 16}
    with sd.LLM(tiny, max_model_len=32, speculative_config=config) as llm:
        prompt = {"prompt_token_ids": [70] * (32 - room)}
        [answer] = answers(llm, prompt, sd.SamplingParams(temperature=0, ignore_eos=True))
    assert (len(answer.token_ids), answer.finish_reason) == (room, "length")


def test_the_report_says_why_nothing_was_drafted(tiny: Path) -> None:
    config = {"method": "ngram", "prompt_lookup_min": 8, "prompt_lookup_max": 8}
    with sd.LLM(tiny, speculative_config=config) as llm:
        params = sd.SamplingParams(temperature=0, max_tokens=6, ignore_eos=True)
        [output] = llm.generate("the end", params, use_tqdm=False)
    stats = stats_of(output)
    assert stats.num_draft_tokens == 0
    assert stats.draft_acceptance_rate is None
    assert stats.num_plain_steps == 6
    # The prompt, then steps that may draft, then the last one, which has no room.
    reasons = {reason: count for reason, count in stats.draft_stop_reasons.items() if count}
    assert reasons == {"prompt": 1, "no_draft": 4, "budget": 1}


def test_verification_leaves_its_inputs_alone() -> None:
    import numpy as np

    from specdec_rs.numpy import verify_chain

    target = np.tile(np.array([0.5, 0.3, 0.2]), (3, 1))
    draft = np.tile(np.array([0.2, 0.2, 0.6]), (2, 1))
    tokens = np.array([2, 2])
    copies = [array.copy() for array in (target, draft, tokens)]
    for seed in range(20):
        verify_chain(target, draft, tokens, method="standard", seed=seed)
    for array, copy in zip((target, draft, tokens), copies, strict=True):
        assert (array == copy).all()


def test_every_report_has_its_test() -> None:
    """The table names a test or says why there is none; each test named is there."""
    table = (ROOT / "tests" / "known_bugs.md").read_text()
    rows = re.findall(r"^\| ([A-Z]\d+) \| .* \| (.+) \|$", table, re.MULTILINE)
    assert len(rows) > 90
    sources = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "crates").rglob("*.rs")]
    names = {
        name
        for path in sources
        if "target" not in path.parts
        for name in re.findall(r"\b(?:def|fn) (\w+)", path.read_text())
    }
    for report, tests in rows:
        if tests.startswith("none: "):
            continue
        named = re.findall(r"`(\w+)`", tests)
        assert named, report
        assert set(named) <= names, (report, set(named) - names)
