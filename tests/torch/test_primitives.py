"""`specdec_rs.torch`: the answers of `specdec_rs.numpy` on tensors of every type."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

import specdec_rs as sd
from specdec_rs import numpy as sdn
from specdec_rs import reference
from specdec_rs import torch as sdt
from specdec_rs.reference.law import normalise

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
PARENTS = [-1, -1, 0, 0, 2]


def instance(seed: int, dtype: torch.dtype, size: int = 12) -> tuple[Any, Any, list[int]]:
    """Target and draft rows of a tree of five, most tokens impossible; siblings differ."""
    numbers = torch.Generator().manual_seed(seed)
    possible = torch.rand(size, generator=numbers) < 0.4
    rows = torch.rand((11, size), generator=numbers) * possible
    rows[:, :3] += 0.1
    rows /= rows.sum(dim=1, keepdim=True)
    rows = rows.to(dtype)
    return rows[:6], rows[6:], [0, 1, 0, 2, 1]


def test_names_and_signatures_are_those_of_numpy() -> None:
    assert sdt.__all__ == sdn.__all__
    for name in sdt.__all__:
        ours, theirs = (inspect.signature(getattr(of, name)) for of in (sdt, sdn))
        assert set(theirs.parameters) <= set(ours.parameters)
        assert inspect.getdoc(getattr(sdt, name))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["greedy", "standard", "traversal", "coupled", "block"])
def test_tensors_give_what_arrays_give(method: str, dtype: torch.dtype) -> None:
    for seed in range(60):
        p, q, tokens = instance(seed, dtype)
        before = p.clone(), q.clone()
        at: dict[str, Any] = {"method": method, "seed": seed, "position": seed}
        # Widened without loss; the reference takes less rounding than bfloat16 needs.
        slow = [[normalise([float(x) for x in row]) for row in rows] for rows in (p, q)]
        if method == "block":
            found = sdt.verify_chain(p, q, torch.tensor(tokens), **at)
            expected = reference.verify_chain(*slow, tokens, **at)
        else:
            found = sdt.verify_tree(p, q, torch.tensor(tokens), PARENTS, **at)
            expected = reference.verify_tree(*slow, tokens, PARENTS, **at)
        assert (tuple(found.token_ids), found.num_accepted) == expected
        assert torch.equal(p, before[0])
        assert torch.equal(q, before[1])


@pytest.mark.parametrize("method", ["greedy", "standard", "traversal", "coupled"])
def test_the_columns_that_are_moved_from_a_device_are_enough(method: str) -> None:
    """What happens to tensors on another device, on this one."""
    for seed in range(60):
        p, q, tokens = instance(seed, torch.float32, 40)
        (rows, draft), columns = sdt._support(p, q)
        assert columns is not None
        assert rows.shape[1] == len(columns[0]) < 40
        at: dict[str, Any] = {"method": method, "seed": seed, "position": 7}
        moved = sdt._core.verify(rows, draft, tokens, PARENTS, columns=columns, **at)
        here = sdt.verify_tree(p, q, tokens, PARENTS, **at)
        assert moved == (here.token_ids, here.num_accepted)
        assert sdt._core.sample(
            *sdt._support(p[:1])[0], seed=seed, position=3, columns=sdt._support(p[:1])[1]
        ) == sdt.sample(p[0], seed=seed, position=3)
    p[2, 30] = float("nan")
    (rows, draft), columns = sdt._support(p, q)
    with pytest.raises(sd.ConfigError, match=r"row 2 of target_probs.*token 30 is NaN"):
        sdt._core.verify(rows, draft, tokens, PARENTS, columns=columns, **at)


@pytest.mark.parametrize("dtype", DTYPES)
def test_laws_and_samples(dtype: torch.dtype) -> None:
    params = sd.SamplingParams(temperature=0.8, top_k=6, top_p=0.9)
    for seed in range(30):
        torch.manual_seed(seed)
        logits = (2 * torch.randn(50)).to(dtype).requires_grad_()
        law = sdt.process_logits(logits, params)
        assert law.dtype == torch.float64
        expected = sdn.process_logits(logits.detach().float().numpy(), params)
        np.testing.assert_array_equal(law.numpy(), expected)
        token = sdt.sample(law, seed=seed, position=1)
        assert token == sdn.sample(expected, seed=seed, position=1)
        assert law[token] > 0
    greedy = sdt.process_logits(logits, sd.SamplingParams(temperature=0))
    assert greedy.argmax() == logits.argmax()
    assert greedy.sum() == 1


def test_trees_and_masks() -> None:
    tree = sdt.build_tree([[1, 2], torch.tensor([1, 3])])
    assert tree.token_ids.tolist() == [1, 2, 3]
    assert tree.parents.dtype == sdt.build_tree([]).parents.dtype == torch.int64
    mask = sdt.tree_attention_mask(tree.parents, context_length=1)
    expected = sdn.tree_attention_mask(tree.parents.numpy(), context_length=1)
    assert mask.dtype == torch.bool
    np.testing.assert_array_equal(mask.numpy(), expected)


def test_what_does_not_fit_is_named() -> None:
    half = torch.full((2, 2), 0.5)
    at: dict[str, Any] = {"method": "standard", "seed": 0}
    meta = half.to("meta")
    for call, message in (
        (lambda: sdt.verify_chain(half.numpy(), half[:1], [0], **at), "target_probs"),
        (lambda: sdt.verify_chain(half.int(), half[:1], [0], **at), "int32"),
        (lambda: sdt.verify_chain(half, half[0], [0], **at), r"draft_probs.*\(2,\)"),
        (lambda: sdt.verify_chain(half, meta[:1], [0], **at), "meta"),
        (lambda: sdt.verify_chain(half, torch.ones(1, 1), [0], **at), "draft_probs have 1"),
        (lambda: sdt.verify_chain(half, half[:1], torch.tensor([2]), **at), "draft_token_ids"),
        (lambda: sdt.sample(torch.tensor([0.7, float("nan")]), seed=0, position=0), "NaN"),
        (lambda: sdt.process_logits(half, sd.SamplingParams()), "logits"),
    ):
        with pytest.raises(sd.ConfigError, match=message):
            call()
