"""The verifiers on rows and a seed: agreement with the committed outcomes, shapes, errors."""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from typing import Any

import pytest

from specdec_rs.reference import Law, exact, sample, verify_chain, verify_tree
from specdec_rs.reference.law import one_hot
from tests.exactness import vectors

CASES = json.loads((vectors.FOLDER / "verify_keyed.json").read_text())["cases"]
P = [(0.5, 0.3, 0.2), (0.1, 0.2, 0.7), (0.3, 0.3, 0.4)]
Q = [(0.2, 0.2, 0.6), (0.3, 0.3, 0.4)]


def rows(case: dict[str, Any]) -> tuple[list[Law], list[Law]]:
    """Target and draft rows of a case as floats, a rule's token as a one-hot row."""
    p: list[Law] = [tuple(map(float, exact(row))) for row in case["p"]]
    q: list[Law] = [
        tuple(map(float, exact(row))) if row else one_hot(token, len(p[0]))
        for row, token in zip(case["q"], case["tokens"], strict=True)
    ]
    return p, q


def is_chain(case: dict[str, Any]) -> bool:
    parents: list[int] = case["parents"]
    return parents == list(range(-1, len(parents) - 1))


@pytest.mark.parametrize("method", ["greedy", "standard", "block", "traversal", "coupled"])
def test_floats_give_the_committed_outcomes(method: str) -> None:
    tried = 0
    for case in (case for case in CASES if case["method"] == method):
        p, q = rows(case)
        for found in case["outcomes"]:
            at = {"method": method, "seed": found["seed"], "position": found["position"]}
            tokens = [case["tokens"][node] for node in found["path"]]
            expected = ((*tokens, found["next"]), len(tokens))
            if method != "block":
                assert verify_tree(p, q, case["tokens"], case["parents"], **at) == expected
            if is_chain(case) and method != "traversal":
                assert verify_chain(p, q, case["tokens"], **at) == expected
            tried += 1
    assert tried >= 100


def test_block_and_traversal_give_the_same_on_a_chain() -> None:
    for seed in range(200):
        chain = verify_chain(P, Q, [2, 1], method="block", seed=seed, position=4)
        tree = verify_tree(P, Q, [2, 1], [-1, 0], method="traversal", seed=seed, position=4)
        assert chain == tree


def test_a_plain_step_of_coupled_is_sample() -> None:
    for position in range(50):
        plain = verify_chain(P[:1], [], [], method="coupled", seed=3, position=position)
        assert plain == ((sample(P[0], seed=3, position=position),), 0)


@pytest.mark.parametrize("method", ["standard", "block", "coupled"])
def test_the_first_token_has_the_law_of_the_target(method: str) -> None:
    seeds = range(4000)
    first: Counter[int] = Counter()
    for seed in seeds:
        # Drawn from Q[0], Q[1] with numbers that the verifier does not use.
        drafts = [sample(q, seed=seed, position=1000 + i) for i, q in enumerate(Q)]
        found = verify_chain(P, Q, drafts, method=method, seed=seed)
        first[found.token_ids[0]] += 1
    for token, expected in enumerate(P[0]):
        sigma = math.sqrt(expected * (1 - expected) / len(seeds))
        assert abs(first[token] / len(seeds) - expected) < 5 * sigma


def test_greedy_accepts_the_arg_max_and_nothing_else() -> None:
    assert verify_chain(P, Q, [0, 2], method="greedy", seed=0) == ((0, 2, 2), 2)
    assert verify_chain(P, Q, [0, 1], method="greedy", seed=0) == ((0, 2), 1)
    assert verify_chain(P, Q, [1, 2], method="greedy", seed=0) == ((0,), 0)
    tree = verify_tree(P, Q, [1, 0], [-1, -1], method="greedy", seed=0)
    assert tree == ((0, 2), 1)


def test_inputs_are_not_changed() -> None:
    p, q, tokens = [list(row) for row in P], [list(row) for row in Q], [2, 1]
    before = copy.deepcopy((p, q, tokens))
    for method in ("greedy", "standard", "block", "coupled"):
        verify_chain(p, q, tokens, method=method, seed=1)
    for method in ("standard", "traversal", "coupled"):
        verify_tree(p, q, tokens, [-1, 0], method=method, seed=1)
    assert (p, q, tokens) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target_probs": P[:2]}, "target_probs has 2 rows, expected 3"),
        ({"draft_probs": Q[:1]}, "draft_probs has 1 rows, expected 2"),
        ({"draft_probs": [(0.5, 0.5), Q[1]]}, "row 1 of draft_probs has 3 probabilities, row 0"),
        ({"draft_probs": [(0.5, 0.6, 0.1), Q[1]]}, "row 0 of draft_probs: probabilities sum to"),
        ({"target_probs": [P[0], (1.2, -0.2, 0.0), P[2]]}, "row 1 of target_probs: weight of"),
        ({"draft_token_ids": [2, 3]}, "token 3 cannot have been drawn"),
        ({"draft_token_ids": [-1, 1]}, "token -1 cannot have been drawn"),
        ({"draft_probs": [(0.5, 0.5, 0.0), Q[1]]}, "token 2 cannot have been drawn"),
        ({"method": "best"}, "method is 'best'"),
        ({"seed": -1, "method": "greedy"}, "seed is -1"),
        ({"position": -1, "method": "coupled"}, "position is -1"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "target_probs": P,
        "draft_probs": Q,
        "draft_token_ids": [2, 1],
        "method": "standard",
        "seed": 1,
    }
    assert verify_chain(**good)
    assert verify_tree(**good, parents=[-1, 0])
    with pytest.raises(ValueError, match=message):
        verify_chain(**{**good, **change})
    with pytest.raises(ValueError, match=message):
        verify_tree(**{**good, **change}, parents=[-1, 0])


@pytest.mark.parametrize(
    ("parents", "message"),
    [([-1], "1 parents for 2 nodes"), ([0, -1], "parent 0 does not exist"), ([-1, 5], "parent 5")],
)
def test_bad_parents_are_named(parents: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        verify_tree(P, Q, [2, 1], parents, method="standard", seed=1)


def test_siblings_that_have_taken_everything() -> None:
    q = [(0.0, 0.0, 1.0), (0.0, 0.0, 1.0)]
    with pytest.raises(ValueError, match="earlier siblings have taken every token"):
        verify_tree(P, q, [2, 2], [-1, -1], method="standard", seed=1)


def test_target_and_draft_rows_have_the_same_width() -> None:
    with pytest.raises(ValueError, match="draft_probs has 2 tokens, target_probs has 3"):
        verify_chain(P, [(0.5, 0.5)] * 2, [1, 0], method="standard", seed=1)
