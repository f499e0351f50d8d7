"""What `specdec_rs.numpy` and `specdec_rs.torch` share: checks, trees, formulas."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from specdec_rs import _checks as check
from specdec_rs import _core
from specdec_rs.errors import ConfigError
from specdec_rs.params import SamplingParams

CHAIN_METHODS = ("greedy", "standard", "block", "coupled")
TREE_METHODS = ("greedy", "standard", "traversal", "coupled")

# Entries of a mask, one byte each: more is a mistake, and would take the machine with it.
MAX_MASK = 1 << 32

# Rows of probabilities as the core reads them, and the token ids of their columns with the size of
# the vocabulary, where they are not all tokens.
Rows = Any
Columns = tuple[Sequence[int], int] | None


@dataclass(frozen=True)
class Verified:
    """What a verification gives.

    Attributes:
        token_ids: the accepted tokens, then the one drawn after them: `num_accepted + 1` ids.
        num_accepted: how many drafted tokens were accepted.
    """

    token_ids: list[int]
    num_accepted: int


def verify(
    target: Rows,
    draft: Rows,
    draft_token_ids: list[int],
    parents: list[int],
    *,
    method: str,
    allowed: Sequence[str],
    seed: int,
    position: int,
    columns: Columns,
) -> Verified:
    """Check what is no array, and verify."""
    token_ids, accepted = _core.verify(
        target,
        draft,
        draft_token_ids,
        parents,
        method=check.choice("method", method, allowed),
        seed=seed_of(seed),
        position=position_of(position),
        columns=columns,
    )
    return Verified(token_ids, accepted)


def chain(count: int) -> list[int]:
    """Parents of a chain of `count` nodes."""
    return list(range(-1, count - 1))


def seed_of(seed: int) -> int:
    """A seed of 64 bits."""
    return check.integer("seed", seed, 0, check.U64_MAX)


def position_of(position: int) -> int:
    """A number of tokens below 2^32."""
    return check.integer("position", position, 0, check.U32_MAX)


def whole_numbers(name: str, values: Any) -> list[int]:
    """Token ids or parents from any sequence or array of one dimension.

    Whether they fit the vocabulary or the tree is for the core to say.
    """
    if hasattr(values, "tolist"):
        values = values.tolist()
    if type(values) is not list:
        values = check.items(name, values, "a sequence of whole numbers")
    return _within(name, values, -(2**63), 2**63 - 1)


def _within(name: str, values: Iterable[Any], low: int, high: int) -> list[int]:
    """Whole numbers in `low..=high`."""
    found = list(values)
    # A long prompt is looked at in each step, so what is right must be seen at once.
    if all(type(x) is int for x in found) and (
        not found or low <= min(found) <= max(found) <= high
    ):
        return found
    return [check.integer(f"{name}[{i}]", value, low, high) for i, value in enumerate(found)]


def law(
    logits: Rows,
    params: SamplingParams,
    *,
    prompt: Iterable[int],
    output: Iterable[int],
    eos: Iterable[int],
    bad_words: Iterable[Iterable[int]],
) -> bytearray:
    """The law after a row of logits, as the bytes of float64."""
    if not isinstance(params, SamplingParams):
        raise check.wrong("sampling_params", params, "a SamplingParams")
    if params.bad_words:
        raise ConfigError(
            "sampling_params.bad_words holds words, and there is no tokenizer here to turn them "
            "into tokens; pass their token ids as bad_words=[[..], ..] instead"
        )
    vocab = logits.shape[1]

    def ids(name: str, values: Any) -> list[int]:
        return _within(name, whole_numbers(name, values), 0, vocab - 1)

    banned = check.items("bad_words", bad_words, "a list of lists of token ids")
    words = [ids(f"bad_words[{i}]", word) for i, word in enumerate(banned)]
    return _core.process_logits(
        logits,
        params,
        prompt_token_ids=ids("prompt_token_ids", prompt),
        output_token_ids=ids("output_token_ids", output),
        eos_token_ids=ids("eos_token_ids", eos),
        bad_words=words,
    )


@dataclass(frozen=True)
class Nodes:
    """The nodes of a tree: tokens, parents (-1: the context) and depths (1 for its children)."""

    token_ids: list[int]
    parents: list[int]
    depths: list[int]


def merge(sequences: Iterable[Any], max_nodes: int | None) -> Nodes:
    """Merge sequences into a tree, level by level."""
    given = check.items("sequences", sequences, "a list of lists of token ids")
    paths = [whole_numbers(f"sequences[{i}]", one) for i, one in enumerate(given)]
    room = None if max_nodes is None else check.integer("max_nodes", max_nodes, 0)
    nodes = Nodes([], [], [])
    children: dict[tuple[int, int], int] = {}
    # The node that a sequence has reached; None once the tree had no room for its next token.
    reached: list[int | None] = [-1] * len(paths)
    for level in range(max(map(len, paths), default=0)):
        for i, path in enumerate(paths):
            parent = reached[i]
            if parent is None or level >= len(path):
                continue
            token = check.integer(f"sequences[{i}][{level}]", path[level], 0, check.U32_MAX)
            node = children.get((parent, token))
            if node is None and (room is None or len(nodes.token_ids) < room):
                node = children[parent, token] = len(nodes.token_ids)
                nodes.token_ids.append(token)
                nodes.parents.append(parent)
                nodes.depths.append(level + 1)
            reached[i] = node
    return nodes


def masked(parents: Any, context_length: int) -> tuple[list[int], int]:
    """Checked parents and length of the context, small enough for a mask."""
    found = whole_numbers("parents", parents)
    for node, parent in enumerate(found):
        check.integer(f"parents[{node}]", parent, -1, node - 1)
    front = check.integer("context_length", context_length, 0, check.U32_MAX)
    size = len(found) * (front + len(found))
    if size > MAX_MASK:
        raise ConfigError(
            f"context_length: {front} and {len(found)} nodes make a mask of {size} bytes, "
            f"expected at most {MAX_MASK}"
        )
    return found, front


def expected_tokens(alpha: float, gamma: int) -> float:
    """Tokens per step, the one after the draft included: (1 - alpha^(gamma+1)) / (1 - alpha).

    Leviathan et al., arXiv:2211.17192. A lower bound for `block` and `traversal`.

    Args:
        alpha: probability that a drafted token is accepted, 0 to 1, the same at each place.
        gamma: drafted tokens in a step, 0 to 2^32 - 1.

    Raises:
        ConfigError: a value out of range.
    """
    alpha = check.number("alpha", alpha, 0, 1)
    tokens = check.integer("gamma", gamma, 0, check.U32_MAX) + 1
    if alpha == 1:
        return float(tokens)
    # Near 1 the power would lose the digits of 1 - alpha^tokens; its logarithm keeps them.
    missed = 1 - alpha**tokens if alpha <= 0.5 else -math.expm1(tokens * math.log(alpha))
    return missed / (1 - alpha)


def speedup(
    alpha: float,
    gamma: int,
    draft_cost: float,
    verify_cost: Sequence[float] | Callable[[int], float] | None = None,
) -> float:
    """Tokens per unit of time over those of plain decoding.

    expected_tokens / (gamma * draft_cost + v(gamma + 1) / v(1)).

    Args:
        alpha: probability that a drafted token is accepted, 0 to 1.
        gamma: drafted tokens in a step, 0 to 2^32 - 1.
        draft_cost: time of one draft step over that of a target step of one row, 0 or more.
        verify_cost: v, the time of a target step by its rows, in any unit: a function, or the
            times of 1, 2, .. rows (`specdec bench kernels` measures them). None takes it for
            constant, as the textbook does; on a CPU it is not.

    Raises:
        ConfigError: a value out of range, or no time for gamma + 1 rows.
    """
    tokens, gamma = expected_tokens(alpha, gamma), int(gamma)
    draft_cost = check.number("draft_cost", draft_cost, 0)
    cost = _cost(verify_cost)
    time = gamma * draft_cost + cost(gamma + 1) / cost(1)
    if time == 0:
        raise check.wrong("verify_cost", verify_cost, "times whose ratio is not 0 in float64")
    return tokens / time


def _cost(
    verify_cost: Sequence[float] | Callable[[int], float] | None,
) -> Callable[[int], float]:
    """The time of a number of rows, checked as it is asked for."""
    if verify_cost is None:
        return lambda _rows: 1.0
    if callable(verify_cost):
        return lambda rows: check.number(
            f"verify_cost({rows})", verify_cost(rows), 0, open_low=True
        )
    times = check.items("verify_cost", verify_cost, "a function, or the times of 1, 2, .. rows")

    def cost(rows: int) -> float:
        if len(times) < rows:
            raise check.wrong("verify_cost", verify_cost, f"times of 1 to {rows} rows")
        return check.number(f"verify_cost[{rows - 1}]", times[rows - 1], 0, open_low=True)

    return cost
