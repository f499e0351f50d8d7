"""From logits to the law: the shared vectors, the order of processors, and what they remember."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from specdec_rs.reference import Sampling, exact, process_logits
from specdec_rs.reference.law import (
    argmax,
    check_law,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    normalise,
    one_hot,
    without,
)

VECTORS = Path(__file__).parent.parent / "vectors"
CASES: list[dict[str, Any]] = json.loads((VECTORS / "processors.json").read_text())["cases"]
HALF = Fraction(1, 2)

Ids = tuple[int, ...]


def logs(*weights: float) -> list[float]:
    return [math.log(w) if w > 0 else -math.inf for w in weights]


def law(
    *weights: float, prompt: tuple[int, ...] = (), output: tuple[int, ...] = (), **fields: Any
) -> Any:
    """The law of logits ln(weights), to be compared with approx."""
    found = process_logits(
        logs(*weights), Sampling(**fields), prompt_token_ids=prompt, output_token_ids=output
    )
    return [float(x) for x in found]


def approx(*weights: float) -> Any:
    """Proportions, up to the rounding of ln and exp."""
    return pytest.approx([w / sum(weights) for w in weights], rel=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_shared_vectors(case: dict[str, Any]) -> None:
    words = {"id", "weights", "law", "prompt", "output", "path", "bad_words"}
    fields = {name: value for name, value in case.items() if name not in words}
    bias = fields.pop("logit_bias", {})
    fields["logit_bias"] = {int(token): value for token, value in bias.items()}
    found = process_logits(
        logs(*case["weights"]),
        Sampling(**fields),
        prompt_token_ids=case.get("prompt", []),
        output_token_ids=[*case.get("output", []), *case.get("path", [])],
        bad_words=case.get("bad_words", []),
    )
    expected = [float(Fraction(x)) for x in case["law"]]
    assert [float(x) for x in found] == approx(*expected)


def test_g4_top_p_in_exact_numbers() -> None:
    p = exact([5, 3, 2])
    assert keep_top_p(p, Fraction(8, 10)) == exact([5, 3, 0])
    assert keep_top_p(p, Fraction(8001, 10000)) == p
    assert keep_top_p(p, Fraction(1, 1000)) == one_hot(0, 3)


def test_cuts_in_exact_numbers() -> None:
    p = exact([2, 5, 3, 3, 0])
    assert keep_top_k(p, 1) == one_hot(1, 5)
    assert keep_top_k(p, 2) == keep_top_k(p, 3) == exact([0, 5, 3, 3, 0])
    assert keep_top_k(p, 4) == keep_top_k(p, 0) == keep_top_k(p, 9) == p
    # Logits may differ where probabilities do not.
    assert keep_top_k(p, 2, by=[0, 5, 1, 2, -9]) == exact([0, 5, 0, 3, 0])
    assert keep_min_p(p, Fraction(3, 5)) == exact([0, 5, 3, 3, 0])
    assert keep_min_p(p, Fraction(0)) == p
    assert keep_top_p(exact([1, 2, 2, 2]), HALF) == exact([0, 1, 1, 0])


def test_laws_are_checked() -> None:
    assert check_law([0.5004, 0.5], "row") == pytest.approx([0.5002, 0.4998], abs=1e-4)
    for row, message in (
        ([0.5, 0.6], "row: probabilities sum to 1.1"),
        ([HALF, HALF + Fraction(1, 10**6)], "row: probabilities sum to"),
        ([0.5, math.nan], "row: weight of token 1 is nan"),
        ([1.5, -0.5], "row: weight of token 1 is -0.5"),
        ([math.inf, 0.5], "row: weight of token 0 is inf"),
        ([0.0, 0.0], "row: none of 2 tokens is possible"),
        ([], "row: none of 0 tokens is possible"),
    ):
        with pytest.raises(ValueError, match=message):
            check_law(row, "row")
    assert without(exact([1, 1]), [0, 1]) is None
    assert argmax([1, 3, 3]) == 1


def test_order_penalties_come_before_temperature() -> None:
    # ln 5 - ln 2, then halved: sqrt(5/2). The other way round: sqrt(5) / 2.
    found = law(5, 3, output=(0,), temperature=2.0, presence_penalty=math.log(2))
    assert found == approx(math.sqrt(2.5), math.sqrt(3))


def test_order_bias_comes_before_the_repetition_penalty() -> None:
    # Logit 1 + 3 = 4, divided by 2. The other way round: 1 / 2 + 3.
    found = process_logits(
        [1.0, 0.0],
        Sampling(logit_bias={0: 3.0}, repetition_penalty=2.0),
        prompt_token_ids=[0],
    )
    assert [float(x) for x in found] == approx(math.exp(2), 1)


def test_order_min_p_top_k_top_p() -> None:
    # min-p leaves 40, 30, 20; top-p then counts in 90, not in 100: 40 + 30 reach 0.75 of that.
    assert law(40, 30, 20, 10, min_p=0.3, top_p=0.75) == approx(4, 3, 0, 0)
    assert law(40, 30, 20, 10, top_p=0.75) == approx(4, 3, 2, 0)
    # top-k leaves 40, 30; 40 reaches 0.55 of 70, but not of 100.
    assert law(40, 30, 20, 10, top_k=2, top_p=0.55) == approx(1, 0, 0, 0)
    assert law(40, 30, 20, 10, top_p=0.55) == approx(4, 3, 0, 0)


def test_penalties_count_every_accepted_token_once() -> None:
    weights, ln2 = (8, 4, 2), math.log(2)
    assert law(*weights, output=(0, 1, 0), frequency_penalty=ln2) == approx(2, 2, 2)
    assert law(*weights, output=(0, 1, 0), presence_penalty=ln2) == approx(4, 2, 2)
    assert law(*weights, output=(0, 1, 0), presence_penalty=-ln2) == approx(16, 8, 2)
    # The prompt does not count for these two.
    assert law(*weights, prompt=(0, 1, 0), frequency_penalty=ln2) == approx(*weights)
    assert law(*weights, prompt=(0, 1, 0), presence_penalty=ln2) == approx(*weights)


def test_repetition_penalty_looks_at_prompt_and_output() -> None:
    sampling = Sampling(repetition_penalty=2.0)
    found = process_logits(
        [2.0, -2.0, 2.0, 0.0], sampling, prompt_token_ids=[0, 0], output_token_ids=[1, 3]
    )
    assert [float(x) for x in found] == approx(*(math.exp(x) for x in (1, -4, 2, 0)))


def test_greedy_comes_after_bans_and_penalties() -> None:
    greedy: dict[str, Any] = {"temperature": 0.0}
    assert law(5, 3, 3, **greedy) == [1, 0, 0]
    assert law(5, 3, 3, allowed_token_ids=[1, 2], **greedy) == [0, 1, 0]
    assert law(5, 3, 3, logit_bias={2: 10.0}, **greedy) == [0, 0, 1]
    assert law(5, 3, 2, output=(0,), presence_penalty=math.log(2), **greedy) == [0, 1, 0]
    assert law(5, 3, 3, temperature=9e-6) == [1, 0, 0]


def test_end_tokens_are_held_back_until_min_tokens() -> None:
    sampling = Sampling(min_tokens=2, stop_token_ids=[1])
    for output, expected in (((), (0, 0, 1)), ((2,), (0, 0, 1)), ((2, 2), (5, 3, 2))):
        found = process_logits(logs(5, 3, 2), sampling, output_token_ids=output, eos_token_ids=[0])
        assert [float(x) for x in found] == approx(*expected)


def test_bad_words_ban_their_last_token_after_the_others() -> None:
    bad = [[0, 1], [2], [1, 1, 0], []]
    for output, expected in (
        ((), (5, 3, 0, 1)),
        ((0,), (5, 0, 0, 1)),
        ((0, 3), (5, 3, 0, 1)),
        ((1,), (5, 3, 0, 1)),
        ((1, 1), (0, 3, 0, 1)),
    ):
        found = process_logits(logs(5, 3, 2, 1), Sampling(), output_token_ids=output, bad_words=bad)
        assert [float(x) for x in found] == approx(*expected)
    # A word is a word of the output: one that begins in the prompt does not count.
    found = process_logits(logs(5, 3), Sampling(), prompt_token_ids=[0], bad_words=[[0, 1]])
    assert [float(x) for x in found] == approx(5, 3)


def test_the_law_of_a_node_counts_the_path_to_it() -> None:
    """Three drafted tokens are three occurrences at the fourth place, none at the first."""
    laws = [law(8, 1, output=(0,) * n, frequency_penalty=math.log(2)) for n in range(4)]
    assert laws == [approx(8, 1), approx(4, 1), approx(2, 1), approx(1, 1)]


def test_inputs_are_not_changed_and_bad_ones_are_named() -> None:
    row = logs(5, 3, 2)
    process_logits(row, Sampling(allowed_token_ids=[1], logit_bias={1: 1.0}))
    assert row == logs(5, 3, 2)
    for logits, fields, message in (
        ([0.0, math.nan], {}, "logit of token 1 is nan"),
        ([math.inf, 0.0], {}, "logit of token 0 is inf"),
        ([-math.inf, -math.inf], {}, "none of 2 tokens is left"),
        ([], {}, "row of logits is empty"),
        ([0.0], {"allowed_token_ids": []}, "none of 1 tokens is left"),
        ([0.0], {"logit_bias": {1: 0.5}}, "token 1 is outside the vocabulary of 1"),
    ):
        with pytest.raises(ValueError, match=message):
            process_logits(logits, Sampling(**fields))
    with pytest.raises(ValueError, match="token 3 is outside"):
        process_logits(row, Sampling(), output_token_ids=[3])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -1.0),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_k", -2),
        ("min_p", 1.5),
        ("min_tokens", -1),
        ("repetition_penalty", 0.0),
        ("presence_penalty", math.nan),
        ("frequency_penalty", math.inf),
        ("logit_bias", {0: math.nan}),
    ],
)
def test_parameters_out_of_range(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{field} is"):
        Sampling(**{field: value})


def test_sampling_takes_the_fields_of_other_objects() -> None:
    class Params:
        temperature = 0.5
        top_k = -1
        logit_bias = None
        max_tokens = 7

    assert Sampling.of(Params()) == Sampling(temperature=0.5, top_k=-1)
    assert normalise(process_logits(logs(5, 3), Sampling.of(Params()))) == approx(25, 9)
