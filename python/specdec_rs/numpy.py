"""The law and the verifiers on NumPy arrays, for engines that compute probabilities themselves.

    from specdec_rs import numpy as sd

    p = sd.process_logits(logits, SamplingParams(temperature=0.7, top_p=0.9))
    found = sd.verify_chain(target_probs, draft_probs, drafted, method="block", seed=1, position=n)

Rows of float16, float32 or float64 are read where they lie (an array that is not C-contiguous is
copied once), and no input is ever changed. Numbers depend on (seed, position) alone, so the same
call gives the same tokens. Needs NumPy: `pip install specdec-rs[numpy]`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from specdec_rs import _checks as check
from specdec_rs import _core
from specdec_rs import _primitives as shared
from specdec_rs._primitives import Verified, expected_tokens, speedup
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

Floats = npt.NDArray[np.floating[Any]]
TokenIds = Iterable[int] | npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Tree:
    """Drafted tokens merged into a tree, parents before children.

    Attributes:
        token_ids: int64, shape (n,).
        parents: int64, shape (n,); the node before each node, -1 for the context.
        depths: int64, shape (n,); tokens from the context to the node, 1 for its children. The
            absolute position of node i is `position + depths[i] - 1`.
    """

    token_ids: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int64]
    depths: npt.NDArray[np.int64]


def process_logits(
    logits: Floats,
    sampling_params: SamplingParams,
    *,
    prompt_token_ids: TokenIds = (),
    output_token_ids: TokenIds = (),
    eos_token_ids: TokenIds = (),
    bad_words: Iterable[TokenIds] = (),
) -> npt.NDArray[np.float64]:
    """The law of the token that follows prompt and output.

    Processors run in vLLM's order: allowed ids, bad words, min_tokens, logit bias; repetition,
    frequency and presence penalties; temperature, min-p, top-k, top-p. Computed as the engine does
    it, from logits in float32.

    Args:
        logits: shape (V,), float16, float32 or float64; -inf is an impossible token.
        sampling_params: how to choose; only the fields that decide a law are looked at.
        prompt_token_ids: tokens of the prompt; the repetition penalty looks at them.
        output_token_ids: tokens emitted so far, then the drafted ones on the path to this row.
        eos_token_ids: the model's end tokens, which `min_tokens` holds back.
        bad_words: token ids of each banned word.

    Returns:
        float64, shape (V,), sum 1. Tokens that were cut are exactly 0; temperature 0 is one-hot at
        the largest logit, the lowest id on ties.

    Raises:
        ConfigError: a wrong shape or type, a token id outside 0..V-1.
        LogitsError: NaN or +inf in the row (the token is named), or no token left.
    """
    rows = _rows("logits", logits, 1)
    law = shared.law(
        rows,
        sampling_params,
        prompt=prompt_token_ids,
        output=output_token_ids,
        eos=eos_token_ids,
        bad_words=bad_words,
    )
    return np.frombuffer(law, dtype=np.float64)


def sample(probs: Floats, *, seed: int, position: int) -> int:
    """A token of a law, by the noise of `coupled`.

    Equal laws give equal tokens, and similar laws often do: the token is the winner of a race with
    the noise of (seed, position, token).

    Args:
        probs: shape (V,), float16, float32 or float64, sum 1 up to rounding.
        seed: 0 to 2^64 - 1.
        position: absolute index of the token in prompt + output.

    Raises:
        ConfigError: a wrong shape or type, NaN, negative or unnormalised probabilities.
    """
    rows = _rows("probs", probs, 1)
    seed, position = shared.seed_of(seed), shared.position_of(position)
    return _core.sample(rows, seed=seed, position=position)


def verify_chain(
    target_probs: Floats,
    draft_probs: Floats,
    draft_token_ids: TokenIds,
    *,
    method: str,
    seed: int,
    position: int = 0,
) -> Verified:
    """Verify a chain of k drafted tokens. The tokens that come out have the target's law exactly.

    Args:
        target_probs: shape (k + 1, V); row i is the target's law after the first i drafted tokens.
        draft_probs: shape (k, V); row i is the law that token i was drawn from, one-hot for a token
            chosen by a rule that looked at the context only. float16, float32 or float64, sums 1
            up to rounding, for both.
        draft_token_ids: shape (k,).
        method: "greedy" (the likeliest token of each row), "standard" (ratio test), "block" (joint
            test, accepts at least as much) or "coupled" (the token of `sample` at each place, a
            function of seed and target alone).
        seed: 0 to 2^64 - 1; with `position` it decides every number. Draw drafts with other
            numbers, except for "coupled", whose drafts may come from `sample` with the same seed.
        position: tokens of prompt + output so far, the absolute index of the first drafted token.
            It must grow from call to call under one seed.

    Raises:
        ConfigError: shapes that do not fit; a probability that is NaN, infinite or negative, a sum
            that is not 1 (row and value are named); a token outside 0..V-1 or one that its draft
            row rules out; another method.
    """
    ids = shared.whole_numbers("draft_token_ids", draft_token_ids)
    return shared.verify(
        _rows("target_probs", target_probs, 2),
        _rows("draft_probs", draft_probs, 2),
        ids,
        shared.chain(len(ids)),
        method=method,
        allowed=shared.CHAIN_METHODS,
        seed=seed,
        position=position,
        columns=None,
    )


def verify_tree(
    target_probs: Floats,
    draft_probs: Floats,
    draft_token_ids: TokenIds,
    parents: TokenIds,
    *,
    method: str,
    seed: int,
    position: int = 0,
) -> Verified:
    """Verify a tree of n drafted tokens. The tokens that come out have the target's law exactly.

    Args:
        target_probs: shape (n + 1, V); row 0 is the target's law after the context, row i + 1 after
            node i.
        draft_probs: shape (n, V); row i is the law that node i was drawn from *before* its earlier
            siblings were taken out (siblings are drawn without replacement), one-hot for a token
            chosen by a rule that looked at the context only. Types as in `verify_chain`.
        draft_token_ids: shape (n,); siblings differ.
        parents: shape (n,); parents before children, siblings in the order they were drawn, -1 is
            the context.
        method: "greedy", "standard" (recursive rejection, child after child), "traversal" (from the
            leaves upwards, accepts at least as much; "block" on a chain) or "coupled".
        seed: as in `verify_chain`.
        position: as in `verify_chain`.

    Raises:
        ConfigError: as `verify_chain`; a parent that is not before its child, equal siblings.
    """
    return shared.verify(
        _rows("target_probs", target_probs, 2),
        _rows("draft_probs", draft_probs, 2),
        shared.whole_numbers("draft_token_ids", draft_token_ids),
        shared.whole_numbers("parents", parents),
        method=method,
        allowed=shared.TREE_METHODS,
        seed=seed,
        position=position,
        columns=None,
    )


def build_tree(sequences: Iterable[TokenIds], *, max_nodes: int | None = None) -> Tree:
    """Merge drafted continuations into one tree; a shared beginning is one path.

    Only for tokens chosen by rules (n-grams, arg max, top-k): merging *drawn* sequences forgets
    how often each was drawn, and would be biased.

    Args:
        sequences: continuations of the context, best first, each of shape (length,).
        max_nodes: room of the tree; given out level by level, first sequences first.

    Raises:
        ConfigError: a token id that is no whole number of 32 bits.
    """
    nodes = shared.merge(sequences, max_nodes)
    return Tree(*(np.array(x, np.int64) for x in (nodes.token_ids, nodes.parents, nodes.depths)))


def tree_attention_mask(parents: TokenIds, *, context_length: int = 0) -> npt.NDArray[np.bool_]:
    """Which keys a node of a tree may attend to: the context, its ancestors and itself.

    Args:
        parents: shape (n,); parents before children, -1 is the context.
        context_length: keys of the context, in front of those of the nodes.

    Returns:
        bool, shape (n, context_length + n); True: may attend.

    Raises:
        ConfigError: a parent that is not before its child, or more than 2^32 entries.
    """
    before, front = shared.masked(parents, context_length)
    mask = np.zeros((len(before), front + len(before)), np.bool_)
    mask[:, :front] = True
    for node, parent in enumerate(before):
        if parent >= 0:
            mask[node] = mask[parent]
        mask[node, front + node] = True
    return mask


def _rows(name: str, values: object, dimensions: int) -> npt.NDArray[Any]:
    """An array as rows that the core can read in place."""
    expected = "an array of float16, float32 or float64 of shape " + (
        "(V,)" if dimensions == 1 else "(rows, V)"
    )
    if not isinstance(values, np.ndarray):
        try:
            values = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise check.wrong(name, values, expected) from None
    if dimensions == 2 and values.shape == (0,):
        values = values.reshape(0, 0)
    if values.ndim != dimensions or values.dtype.kind != "f" or values.dtype.itemsize > 8:
        raise check.wrong(name, f"{values.dtype} of shape {values.shape}", expected)
    native = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    return native.reshape(1, -1) if dimensions == 1 else native
