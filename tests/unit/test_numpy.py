"""`specdec_rs.numpy`: the answers of the reference on arrays of every type, shapes, errors."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import specdec_rs as sd
from specdec_rs import numpy as sdn
from specdec_rs import reference

CASES = json.loads(
    (Path(__file__).parents[1] / "vectors" / "verify_keyed.json").read_text(encoding="utf-8")
)["cases"]
DTYPES = [np.float16, np.float32, np.float64]
Array = npt.NDArray[Any]


def laws(weights: list[list[int]], size: int, dtype: type = np.float64) -> Array:
    rows = [[x / sum(row) for x in row] for row in weights]
    return np.array(rows, dtype).reshape(-1, size)


def plain(rows: Array) -> list[list[float]]:
    return [[float(x) for x in row] for row in rows]


@pytest.mark.parametrize("method", ["greedy", "standard", "block", "traversal", "coupled"])
def test_the_committed_outcomes(method: str) -> None:
    tried = 0
    for case in (case for case in CASES if case["method"] == method):
        tokens, parents, size = case["tokens"], case["parents"], len(case["p"][0])
        one_hot = np.eye(size, dtype=int).tolist()
        p = laws(case["p"], size)
        q = laws([row or one_hot[x] for row, x in zip(case["q"], tokens, strict=True)], size)
        for found in case["outcomes"]:
            at = {"method": method, "seed": found["seed"], "position": found["position"]}
            path = found["path"]
            expected = sdn.Verified([*(tokens[i] for i in path), found["next"]], len(path))
            if method != "block":
                assert sdn.verify_tree(p, q, tokens, parents, **at) == expected
            if method != "traversal" and parents == list(range(-1, len(tokens) - 1)):
                assert sdn.verify_chain(p, q, tokens, **at) == expected
                tried += 1
    assert tried > 50 or method == "traversal"


def instance(numbers: np.random.Generator, dtype: type) -> tuple[Array, Array, Array, Array]:
    """Target rows, draft rows, tokens and parents of a random tree whose siblings differ."""
    size, count = int(numbers.integers(2, 9)), int(numbers.integers(0, 6))
    weights = numbers.integers(0, 6, (2 * count + 1, size)) + 1e-9
    rows = (weights / weights.sum(axis=1, keepdims=True)).astype(dtype)
    draft, tokens, parents = rows[count + 1 :], [], []
    taken: set[tuple[int, int]] = set()
    for node in range(count):
        parent = int(numbers.integers(-1, node))
        free = [x for x in range(size) if (parent, x) not in taken and draft[node][x] > 0]
        if not free:
            parent, free = node - 1, [x for x in range(size) if draft[node][x] > 0]
        token = int(numbers.choice(free))
        taken.add((parent, token))
        tokens.append(token)
        parents.append(parent)
    ids = np.array(tokens, np.int64)
    return rows[: count + 1], draft, ids, np.array(parents, np.int64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["greedy", "standard", "traversal", "coupled", "block"])
def test_random_instances_give_what_the_reference_gives(method: str, dtype: type) -> None:
    numbers = np.random.default_rng(5)
    for seed in range(150):
        p, q, tokens, parents = instance(numbers, dtype)
        before = (p.tobytes(), q.tobytes(), tokens.tobytes(), parents.tobytes())
        at: dict[str, Any] = {"method": method, "seed": seed, "position": 3 * seed}
        if method == "block":
            parents = np.arange(len(tokens)) - 1
            ours = sdn.verify_chain(p, q, tokens, **at)
            slow = reference.verify_chain(plain(p), plain(q), tokens.tolist(), **at)
        else:
            ours = sdn.verify_tree(p, q, tokens, parents, **at)
            slow = reference.verify_tree(
                plain(p), plain(q), tokens.tolist(), parents.tolist(), **at
            )
        assert (tuple(ours.token_ids), ours.num_accepted) == slow
        if method != "block":
            assert before == (p.tobytes(), q.tobytes(), tokens.tobytes(), parents.tobytes())


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sample_is_the_token_of_coupled(dtype: type) -> None:
    numbers = np.random.default_rng(6)
    for seed in range(100):
        p, q, _, _ = instance(numbers, dtype)
        found = sdn.sample(p[0], seed=seed, position=9)
        assert found == reference.sample(plain(p)[0], seed=seed, position=9)
        empty = sdn.verify_chain(p[:1], q[:0], [], method="coupled", seed=seed, position=9)
        assert empty == sdn.Verified([found], 0)


PARAMS = [
    sd.SamplingParams(temperature=0.7, top_k=5, top_p=0.8, min_p=0.05),
    sd.SamplingParams(temperature=1.3),
    sd.SamplingParams(top_k=3),
    sd.SamplingParams(top_p=0.5),
    sd.SamplingParams(temperature=0),
]


@pytest.mark.parametrize("params", PARAMS, ids=range(len(PARAMS)))
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_law_is_that_of_the_reference(params: sd.SamplingParams, dtype: type) -> None:
    numbers = np.random.default_rng(7)
    asked = reference.Sampling.of(params)
    for _ in range(50):
        logits: Array = (3 * numbers.standard_normal(40)).astype(dtype)
        logits[numbers.integers(0, 40, 3)] = -np.inf
        before = logits.tobytes()
        ours = sdn.process_logits(logits, params)
        # The engine's logits are float32, and so are its exponentials.
        row = [float(x) for x in logits.astype(np.float32)]
        slow = np.array(reference.process_logits(row, asked), float)
        assert ours.dtype == np.float64
        assert logits.tobytes() == before
        np.testing.assert_array_equal(ours > 0, slow > 0)
        np.testing.assert_allclose(ours, slow, rtol=3e-6)
        assert ours.sum() == pytest.approx(1, abs=1e-12)


def test_every_processor_is_there() -> None:
    params = sd.SamplingParams(
        repetition_penalty=1.5,
        frequency_penalty=0.3,
        presence_penalty=0.2,
        logit_bias={2: 1.5},
        allowed_token_ids=[0, 1, 2, 3, 5, 7],
        min_tokens=5,
        stop_token_ids=[7],
    )
    logits = np.linspace(-2, 2, 9)
    history: dict[str, Any] = {
        "prompt_token_ids": [1, 8],
        "output_token_ids": np.array([2, 3, 3]),
        "eos_token_ids": [0],
        "bad_words": [[3, 5], [2]],
    }
    ours = sdn.process_logits(logits, params, **history)
    history["output_token_ids"] = [2, 3, 3]
    row = [float(x) for x in logits.astype(np.float32)]
    slow = reference.process_logits(row, reference.Sampling.of(params), **history)
    np.testing.assert_allclose(ours, np.array(slow, float), rtol=3e-6)
    assert [token for token in range(9) if ours[token] > 0] == [1, 3]
    ours[0] = 1.0  # the caller's own array


def test_arrays_that_cannot_be_read_in_place_are_copied() -> None:
    p = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    q = np.array([[0.25, 0.5, 0.25]])
    at: dict[str, Any] = {"method": "standard", "seed": 3}
    expected = sdn.verify_chain(p, q, [1], **at)
    shapes = (
        np.asfortranarray(p),
        np.repeat(p, 2, axis=1)[:, ::2],
        p.astype(">f8"),
        p.tolist(),
    )
    for rows in shapes:
        assert sdn.verify_chain(rows, q, [1], **at) == expected
    p.flags.writeable = False
    assert sdn.verify_chain(p, q, (1,), **at) == expected


GOOD = [[0.5, 0.5], [0.25, 0.75]]


def chain(p: Any = GOOD, q: Any = ((0.5, 0.5),), ids: Any = (1,), **changed: Any) -> sdn.Verified:
    at = {"method": "standard", "seed": 0, "position": 0, **changed}
    return sdn.verify_chain(np.array(p), np.array(q), ids, **at)


def tree(parents: Any, ids: Any = (0, 1), **changed: Any) -> sdn.Verified:
    at = {"method": "traversal", "seed": 0, "position": 0, **changed}
    rows = np.full((len(ids) + 1, 2), 0.5)
    return sdn.verify_tree(rows, rows[1:], ids, parents, **at)


def law(**changed: Any) -> Array:
    return sdn.process_logits(np.zeros(4), sd.SamplingParams(), **changed)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chain(p=[[0.5, 0.5], [np.nan, 1]]), "row 1 of target_probs.*token 0 is NaN"),
        (lambda: chain(q=[[1.5, -0.5]]), "row 0 of draft_probs.*token 1 is -0.5"),
        (lambda: chain(p=[[0.5, 0.5], [np.inf, 0]]), "row 1 of target_probs.*inf"),
        (lambda: chain(p=[[0.5, 0.4], [0.5, 0.5]]), "row 0 of target_probs.*sum to 0.9"),
        (lambda: chain(q=[[0.0, 0.0]]), "row 0 of draft_probs.*sum to 0"),
        (lambda: chain(p=[[0.5, 0.5]]), "target_probs has 1 rows, expected 2"),
        (lambda: chain(p=[0.5, 0.5]), r"target_probs: found .*shape \(2,\)"),
        (lambda: chain(q=[[0.5, 0.25, 0.25]]), "draft_probs have 3 prob.*target_probs have 2"),
        (lambda: chain(q=[[[0.5, 0.5]]]), "draft_probs: found"),
        (lambda: chain(p=[[1, 0], [0, 1]]), "int64"),
        (lambda: chain(q=np.array([["a", "b"]])), "draft_probs: found"),
        (lambda: chain(ids=[2]), r"draft_token_ids\[0\] is 2, expected a token id in 0..2"),
        (lambda: chain(ids=[-1]), r"draft_token_ids\[0\] is -1"),
        (lambda: chain(ids=[2**40]), r"draft_token_ids\[0\]"),
        (lambda: chain(ids=[2**70]), r"draft_token_ids\[0\]"),
        (lambda: chain(ids=[0.5]), r"draft_token_ids\[0\]"),
        (lambda: chain(ids=[True]), r"draft_token_ids\[0\]"),
        (lambda: chain(ids=5), "draft_token_ids"),
        (lambda: chain(ids="1"), "draft_token_ids"),
        (lambda: chain(q=[[1, 0.0]]), r"draft_token_ids\[0\].*probability 0"),
        (lambda: chain(method="traversal"), "method.*block"),
        (lambda: chain(method=None), "method"),
        (lambda: chain(seed=-1), "seed"),
        (lambda: chain(seed=None), "seed"),
        (lambda: chain(position=2**32), "position"),
        (lambda: tree([-1]), "parents has 1 entries for 2 nodes"),
        (lambda: tree([-1, 1]), r"parents\[1\] is 1"),
        (lambda: tree([-2, 0]), r"parents\[0\] is -2"),
        (lambda: tree([-1, -1], ids=[0, 0]), r"draft_token_ids\[1\].*already"),
        (lambda: tree([-1, 0], method="block"), "method.*traversal"),
        (lambda: sdn.sample(np.array([0.5, 0.6]), seed=0, position=0), "row 0 of probs"),
        (lambda: sdn.sample(np.array([]), seed=0, position=0), "row 0 of probs"),
        (lambda: sdn.sample(np.full((1, 2), 0.5), seed=0, position=0), "probs: found"),
        (lambda: sdn.process_logits(np.zeros((1, 2)), sd.SamplingParams()), "logits: found"),
        (lambda: sdn.process_logits(np.zeros(2), {"top_k": 1}), "sampling_params"),  # type: ignore[arg-type]
        (
            lambda: sdn.process_logits(np.zeros(2), sd.SamplingParams(), output_token_ids=[2]),
            r"output_token_ids\[0\]",
        ),
        (
            lambda: sdn.process_logits(np.zeros(2), sd.SamplingParams(bad_words=["a"])),
            "bad_words",
        ),
        (
            lambda: sdn.process_logits(np.zeros(2), sd.SamplingParams(logit_bias={2: 1.0})),
            "logit_bias",
        ),
        (lambda: law(bad_words=None), "bad_words: found None"),
        (lambda: law(bad_words=np.int64(3)), "bad_words: found .*3"),
        (lambda: law(bad_words=np.array(3)), r"bad_words: found array\(3\)"),
        (lambda: law(bad_words=[3]), r"bad_words\[0\]: found 3"),
        (lambda: law(bad_words=[np.array(3)]), r"bad_words\[0\]: found 3"),
        (lambda: law(prompt_token_ids=np.array(3)), "prompt_token_ids: found 3"),
        (lambda: chain(method=np.array("block")), "method: found"),
        (lambda: chain(seed=10**5000), "seed: found a whole number of 16610 bits"),
        (lambda: sdn.build_tree(None), "sequences: found None"),  # type: ignore[arg-type]
        (lambda: sdn.build_tree(np.array(1)), "sequences: found"),
    ],
)
def test_what_does_not_fit_is_named(call: Any, message: str) -> None:
    with pytest.raises(sd.ConfigError, match=f"(?i){message}"):
        call()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_damaged_logits_are_named(bad: float) -> None:
    with pytest.raises(sd.LogitsError, match="token 1"):
        sdn.process_logits(np.array([0.0, bad, 1.0]), sd.SamplingParams())
    with pytest.raises(sd.LogitsError, match="none of 2"):
        sdn.process_logits(np.full(2, -np.inf), sd.SamplingParams())


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_is_no_error(dtype: type) -> None:
    """A uniform law over a large vocabulary, whose terms all round the same way."""
    for size in (49_152, 151_936):
        row: Array = np.full(size, 1 / size, dtype)
        assert 0 <= sdn.sample(row, seed=1, position=2) < size
    with pytest.raises(sd.SpecdecError, match=r"sum to 1\.0[12]"):
        sdn.sample(np.full(50, 0.0203, dtype), seed=1, position=2)


def test_trees_share_beginnings_and_room() -> None:
    found = sdn.build_tree([[1, 2, 3], np.array([1, 4]), [5], []])
    assert found.token_ids.tolist() == [1, 5, 2, 4, 3]
    assert found.parents.tolist() == [-1, -1, 0, 0, 2]
    assert found.depths.tolist() == [1, 1, 2, 2, 3]
    assert found.parents.dtype == np.int64
    cut = sdn.build_tree([[1, 2, 3], [1, 4], [5]], max_nodes=3)
    assert cut.token_ids.tolist() == [1, 5, 2]
    assert sdn.build_tree([]).token_ids.shape == (0,)
    with pytest.raises(sd.ConfigError, match=r"sequences\[1\]\[0\]"):
        sdn.build_tree([[1], [-1]])
    with pytest.raises(sd.ConfigError, match="max_nodes"):
        sdn.build_tree([[1]], max_nodes=-1)


def test_a_node_sees_the_context_its_ancestors_and_itself() -> None:
    mask = sdn.tree_attention_mask([-1, -1, 0, 0, 2], context_length=2)
    assert mask.dtype == np.bool_
    expected = ["11 10000", "11 01000", "11 10100", "11 10010", "11 10101"]
    assert ["".join("01"[int(x)] for x in row) for row in mask] == [
        x.replace(" ", "") for x in expected
    ]
    assert sdn.tree_attention_mask([]).shape == (0, 0)
    with pytest.raises(sd.ConfigError, match=r"parents\[1\]"):
        sdn.tree_attention_mask([-1, 1])


@pytest.mark.parametrize("length", [2**32 - 1, 2**32, 2**40, 10**30])
def test_a_mask_that_no_memory_holds_is_refused(length: int) -> None:
    with pytest.raises(sd.ConfigError, match="context_length"):
        sdn.tree_attention_mask([-1, 0], context_length=length)


def test_formulas() -> None:
    assert sdn.expected_tokens(0.5, 3) == 1.875
    assert sdn.expected_tokens(1.0, 3) == 4
    assert sdn.speedup(0.5, 3, 0.125) == pytest.approx(1.875 / 1.375)
    assert sdn.speedup(0.5, 1, 0, [2.0, 3.0]) == 1.0
    assert sdn.speedup(0.5, 1, 0, lambda rows: rows) == 0.75


BAD_FORMULAS: dict[str, Callable[[], float]] = {
    "alpha above 1": lambda: sdn.expected_tokens(1.5, 3),
    "alpha NaN": lambda: sdn.expected_tokens(float("nan"), 3),
    "gamma below 0": lambda: sdn.expected_tokens(0.5, -1),
    "gamma 2^32": lambda: sdn.expected_tokens(0.5, 2**32),
    "gamma 2^70": lambda: sdn.expected_tokens(1, 2**70),
    "gamma 10^400": lambda: sdn.speedup(1, 10**400, 1e-5),
    "gamma 10^5000": lambda: sdn.speedup(1, 10**5000, 1e-5),
    "cost below 0": lambda: sdn.speedup(0.5, 3, -1),
    "times of two rows": lambda: sdn.speedup(0.5, 3, 0.1, [1.0, 1.0]),
    "time 0": lambda: sdn.speedup(0.5, 1, 0.1, [0.0, 1.0]),
    "no times": lambda: sdn.speedup(0.5, 0, 0.1, 5),  # type: ignore[arg-type]
    "times without dimensions": lambda: sdn.speedup(0.5, 0, 0.1, np.array(5.0)),  # type: ignore[arg-type]
    "times in a dict": lambda: sdn.speedup(0.5, 0, 0.1, {1: 1.0}),  # type: ignore[arg-type]
    "no number": lambda: sdn.speedup(0.5, 0, 0.1, lambda _rows: None),  # type: ignore[arg-type, return-value]
    "a ratio of 0": lambda: sdn.speedup(0.5, 1, 0, [1e308, 1e-320]),
}


@pytest.mark.parametrize("call", BAD_FORMULAS.values(), ids=BAD_FORMULAS)
def test_formulas_refuse(call: Callable[[], float]) -> None:
    with pytest.raises(sd.ConfigError):
        call()


ALPHAS = [0.0, 5e-324, 1e-9, 0.3, 0.5, 0.5000001, 0.9, 0.999, 1 - 1e-9, 1 - 2**-53, 1.0]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_closed_form_is_the_sum(alpha: float) -> None:
    """Each of its few operations rounds by 2^-53 at most; the sum is of fractions, exact."""
    for gamma in [*range(20), 300]:
        exact = reference.expected_tokens(Fraction(alpha) if alpha > 1e-99 else 0, gamma)
        assert sdn.expected_tokens(alpha, gamma) == pytest.approx(float(exact), rel=2**-50)


@pytest.mark.parametrize("gamma", [10**8, 2**32 - 1])
def test_a_long_draft_takes_no_time(gamma: int) -> None:
    assert sdn.expected_tokens(1, gamma) == gamma + 1
    assert sdn.expected_tokens(0.75, gamma) == 4
    assert sdn.expected_tokens(1 - 1e-15, gamma) == pytest.approx(gamma + 1, rel=1e-5)
    assert sdn.speedup(0.75, gamma, 0.5) == pytest.approx(4 / (gamma / 2 + 1))


def test_signatures_are_the_documented_ones() -> None:
    chain_names = ["target_probs", "draft_probs", "draft_token_ids", "method", "seed", "position"]
    assert list(inspect.signature(sdn.verify_chain).parameters) == chain_names
    tree_names = [*chain_names[:3], "parents", *chain_names[3:]]
    assert list(inspect.signature(sdn.verify_tree).parameters) == tree_names
    for function in (sdn.verify_chain, sdn.verify_tree, sdn.sample):
        kinds = [p.kind for p in inspect.signature(function).parameters.values()]
        assert kinds.count(inspect.Parameter.KEYWORD_ONLY) == (2 if function is sdn.sample else 3)
    assert all(inspect.getdoc(getattr(sdn, name)) for name in sdn.__all__)
    assert dataclasses.is_dataclass(sdn.Verified)
