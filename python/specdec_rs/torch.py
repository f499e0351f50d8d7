"""The law and the verifiers on torch tensors, for engines that compute probabilities themselves.

    from specdec_rs import torch as sd

    p = sd.process_logits(logits, SamplingParams(temperature=0.7, top_p=0.9))
    found = sd.verify_chain(target_probs, draft_probs, drafted, method="block", seed=1, position=n)

Tensors of float16, bfloat16, float32 or float64 on the CPU are read where they lie (one that is not
contiguous is copied once). Of tensors on another device only the columns of tokens that some row
can produce are moved: few after top-k, top-p or min-p. No input is ever changed, gradients are not
tracked. Numbers depend on (seed, position) alone, so the same call gives the same tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from specdec_rs import _checks as check
from specdec_rs import _core
from specdec_rs import _primitives as shared
from specdec_rs._primitives import Columns, Verified, expected_tokens, speedup
from specdec_rs.errors import ConfigError
from specdec_rs.params import SamplingParams

__all__ = [
    "Tree",
    "Verified",
    "build_tree",
    "expected_tokens",
    "process_logits",
    "sample",
    "speedup",
    "tree_attention_mask",
    "verify_chain",
    "verify_tree",
]

TokenIds: TypeAlias = "Iterable[int] | torch.Tensor"

_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@dataclass(frozen=True, eq=False)
class Tree:
    """Drafted tokens merged into a tree, parents before children; int64 tensors on the CPU.

    Attributes:
        token_ids: shape (n,).
        parents: shape (n,); the node before each node, -1 for the context.
        depths: shape (n,); tokens from the context to the node, 1 for its children. The absolute
            position of node i is `position + depths[i] - 1`.
    """

    token_ids: torch.Tensor
    parents: torch.Tensor
    depths: torch.Tensor


def process_logits(
    logits: torch.Tensor,
    sampling_params: SamplingParams,
    *,
    prompt_token_ids: TokenIds = (),
    output_token_ids: TokenIds = (),
    eos_token_ids: TokenIds = (),
    bad_words: Iterable[TokenIds] = (),
) -> torch.Tensor:
    """The law of the token that follows prompt and output.

    As `specdec_rs.numpy.process_logits`. A row on another device is moved to the CPU, its law back.

    Args:
        logits: shape (V,), float16, bfloat16, float32 or float64; -inf is an impossible token.
        sampling_params: how to choose; only the fields that decide a law are looked at.
        prompt_token_ids: tokens of the prompt; the repetition penalty looks at them.
        output_token_ids: tokens emitted so far, then the drafted ones on the path to this row.
        eos_token_ids: the model's end tokens, which `min_tokens` holds back.
        bad_words: token ids of each banned word.

    Returns:
        float64, shape (V,), on the device of `logits`, sum 1. Tokens that were cut are exactly 0;
        temperature 0 is one-hot at the largest logit, the lowest id on ties.

    Raises:
        ConfigError: a wrong shape or type, a token id outside 0..V-1.
        LogitsError: NaN or +inf in the row (the token is named), or no token left.
    """
    row = _tensor("logits", logits, 1)
    law = shared.law(
        _view(row.cpu()),
        sampling_params,
        prompt=prompt_token_ids,
        output=output_token_ids,
        eos=eos_token_ids,
        bad_words=bad_words,
    )
    return torch.frombuffer(law, dtype=torch.float64).to(row.device)


def sample(probs: torch.Tensor, *, seed: int, position: int) -> int:
    """A token of a law, by the noise of `coupled`; as `specdec_rs.numpy.sample`.

    Args:
        probs: shape (V,), float16, bfloat16, float32 or float64, sum 1 up to rounding.
        seed: 0 to 2^64 - 1.
        position: absolute index of the token in prompt + output.

    Raises:
        ConfigError: a wrong shape or type, NaN, negative or unnormalised probabilities.
    """
    rows, columns = _rows(_tensor("probs", probs, 1))
    seed, position = shared.seed_of(seed), shared.position_of(position)
    return _core.sample(rows[0], seed=seed, position=position, columns=columns)


def verify_chain(
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor,
    draft_token_ids: TokenIds,
    *,
    method: str,
    seed: int,
    position: int = 0,
) -> Verified:
    """Verify a chain of k drafted tokens; as `specdec_rs.numpy.verify_chain`.

    Args:
        target_probs: shape (k + 1, V); row i is the target's law after the first i drafted tokens.
        draft_probs: shape (k, V), on the same device; row i is the law that token i was drawn from,
            one-hot for a token chosen by a rule that looked at the context only. float16, bfloat16,
            float32 or float64, sums 1 up to rounding, for both.
        draft_token_ids: shape (k,).
        method: "greedy", "standard", "block" or "coupled".
        seed: 0 to 2^64 - 1; with `position` it decides every number.
        position: tokens of prompt + output so far; must grow from call to call under one seed.

    Raises:
        ConfigError: shapes, types or devices that do not fit; a probability that is NaN, infinite
            or negative, a sum that is not 1 (row and value are named); a token outside 0..V-1 or
            one that its draft row rules out; another method.
    """
    ids = shared.whole_numbers("draft_token_ids", draft_token_ids)
    target, draft, columns = _both(target_probs, draft_probs)
    return shared.verify(
        target,
        draft,
        ids,
        shared.chain(len(ids)),
        method=method,
        allowed=shared.CHAIN_METHODS,
        seed=seed,
        position=position,
        columns=columns,
    )


def verify_tree(
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor,
    draft_token_ids: TokenIds,
    parents: TokenIds,
    *,
    method: str,
    seed: int,
    position: int = 0,
) -> Verified:
    """Verify a tree of n drafted tokens; as `specdec_rs.numpy.verify_tree`.

    Args:
        target_probs: shape (n + 1, V); row 0 is the target's law after the context, row i + 1 after
            node i.
        draft_probs: shape (n, V), on the same device; row i is the law that node i was drawn from
            *before* its earlier siblings were taken out, one-hot for a token chosen by a rule.
        draft_token_ids: shape (n,); siblings differ.
        parents: shape (n,); parents before children, siblings in the order they were drawn, -1 is
            the context.
        method: "greedy", "standard", "traversal" or "coupled".
        seed: as in `verify_chain`.
        position: as in `verify_chain`.

    Raises:
        ConfigError: as `verify_chain`; a parent that is not before its child, equal siblings.
    """
    target, draft, columns = _both(target_probs, draft_probs)
    return shared.verify(
        target,
        draft,
        shared.whole_numbers("draft_token_ids", draft_token_ids),
        shared.whole_numbers("parents", parents),
        method=method,
        allowed=shared.TREE_METHODS,
        seed=seed,
        position=position,
        columns=columns,
    )


def build_tree(sequences: Iterable[TokenIds], *, max_nodes: int | None = None) -> Tree:
    """Merge drafted continuations into one tree; as `specdec_rs.numpy.build_tree`.

    Only for tokens chosen by rules: merging *drawn* sequences would be biased.

    Args:
        sequences: continuations of the context, best first, each of shape (length,).
        max_nodes: room of the tree; given out level by level, first sequences first.

    Raises:
        ConfigError: a token id that is no whole number of 32 bits.
    """
    nodes = shared.merge(sequences, max_nodes)
    return Tree(
        *(
            torch.tensor(x, dtype=torch.int64)
            for x in (nodes.token_ids, nodes.parents, nodes.depths)
        )
    )


def tree_attention_mask(
    parents: TokenIds, *, context_length: int = 0, device: torch.device | str | None = None
) -> torch.Tensor:
    """Which keys a node of a tree may attend to: the context, its ancestors and itself.

    Args:
        parents: shape (n,); parents before children, -1 is the context.
        context_length: keys of the context, in front of those of the nodes.
        device: where the mask is wanted; None: on the CPU.

    Returns:
        bool, shape (n, context_length + n); True: may attend.

    Raises:
        ConfigError: a parent that is not before its child, or more than 2^32 entries.
    """
    before, front = shared.masked(parents, context_length)
    mask = torch.zeros((len(before), front + len(before)), dtype=torch.bool)
    mask[:, :front] = True
    for node, parent in enumerate(before):
        if parent >= 0:
            mask[node] = mask[parent]
        mask[node, front + node] = True
    return mask.to(device)


def _both(target: torch.Tensor, draft: torch.Tensor) -> tuple[Any, Any, Columns]:
    """Both tables as the core reads them."""
    target, draft = _tensor("target_probs", target, 2), _tensor("draft_probs", draft, 2)
    if target.device != draft.device:
        raise ConfigError(
            f"draft_probs lies on {draft.device}, target_probs on {target.device}; move one of them"
        )
    # The core names the mismatch; columns cannot be compared across it.
    if target.shape[1] != draft.shape[1]:
        return _view(target.cpu()), _view(draft.cpu()), None
    (first, second), columns = _rows(target, draft)
    return first, second, columns


def _rows(*tables: torch.Tensor) -> tuple[list[Any], Columns]:
    """Tables of one width and device; from another device than the CPU, only their support."""
    if tables[0].device.type == "cpu":
        return [_view(table) for table in tables], None
    return _support(*tables)


def _support(*tables: torch.Tensor) -> tuple[list[Any], Columns]:
    """The columns in which some row is not 0 (NaN is not), and their token ids."""
    used = torch.stack([(table != 0).any(dim=0) for table in tables]).any(dim=0)
    ids = used.nonzero().squeeze(1)
    rows = [_view(table[:, ids].cpu()) for table in tables]
    return rows, (ids.tolist(), tables[0].shape[1])


def _tensor(name: str, values: torch.Tensor, dimensions: int) -> torch.Tensor:
    """A checked tensor, as rows."""
    expected = "a tensor of float16, bfloat16, float32 or float64 of shape " + (
        "(V,)" if dimensions == 1 else "(rows, V)"
    )
    if not isinstance(values, torch.Tensor):
        raise check.wrong(name, values, expected)
    if values.ndim != dimensions or values.dtype not in _TYPES or values.layout != torch.strided:
        raise check.wrong(name, f"{values.dtype} of shape {tuple(values.shape)}", expected)
    values = values.detach().contiguous()
    return values.reshape(1, -1) if dimensions == 1 else values


def _view(rows: torch.Tensor) -> Any:
    """A tensor on the CPU as an array of the same memory; bfloat16 as 16-bit words."""
    if rows.dtype == torch.bfloat16:
        return rows.view(torch.int16).numpy().view(np.uint16)
    return rows.numpy()
