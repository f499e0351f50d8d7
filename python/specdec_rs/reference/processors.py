"""From a row of logits to the law of the next token, in vLLM's order of processors.

    allowed ids -> bad words -> min_tokens -> logit bias      which tokens exist at all
    -> repetition, frequency, presence penalties              what was said before
    -> temperature -> min-p -> top-k -> top-p                 what is left of the tail

The law is a function of the row and of all tokens before it, so on a tree of drafts it is called
once for each node, with the path to that node as part of `output_token_ids`. No state is kept,
hence none can leak from a rejected token.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Self

from .law import Number, argmax, keep_min_p, keep_top_k, keep_top_p, normalise, one_hot

# Temperatures below this mean greedy, as in vLLM: dividing by them would overflow.
GREEDY_BELOW = 1e-5


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The fields of `SamplingParams` that decide the law, with the same names and defaults.

    Raises:
        ValueError: a value out of range, named.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    min_tokens: int = 0
    stop_token_ids: Collection[int] = ()
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    allowed_token_ids: Collection[int] | None = None

    def __post_init__(self) -> None:
        for name, fits, expected in (
            ("temperature", 0 <= self.temperature < math.inf, "a finite number >= 0"),
            ("top_p", 0 < self.top_p <= 1, "a number in (0, 1]"),
            ("top_k", self.top_k >= -1, "a number of tokens, or 0 or -1 for all"),
            ("min_p", 0 <= self.min_p <= 1, "a number in [0, 1]"),
            ("min_tokens", self.min_tokens >= 0, "a number of tokens"),
            ("repetition_penalty", 0 < self.repetition_penalty < math.inf, "a number above 0"),
            ("presence_penalty", -2 <= self.presence_penalty <= 2, "a number in [-2, 2]"),
            ("frequency_penalty", -2 <= self.frequency_penalty <= 2, "a number in [-2, 2]"),
            ("logit_bias", all(map(math.isfinite, self.logit_bias.values())), "finite numbers"),
        ):
            if not fits:
                raise ValueError(f"{name} is {getattr(self, name)}, expected {expected}")

    @classmethod
    def of(cls, params: object) -> Self:
        """The same fields of another object, such as `specdec_rs.SamplingParams`."""
        found = {f.name: getattr(params, f.name, None) for f in fields(cls)}
        return cls(**{name: value for name, value in found.items() if value is not None})


def process_logits(
    logits: Sequence[float],
    sampling: Sampling,
    *,
    prompt_token_ids: Sequence[int] = (),
    output_token_ids: Sequence[int] = (),
    eos_token_ids: Collection[int] = (),
    bad_words: Collection[Sequence[int]] = (),
) -> tuple[Number, ...]:
    """The law (shape V) of the token that follows prompt and output.

    Args:
        logits: the model's row (shape V); -inf is an impossible token.
        sampling: how to choose.
        prompt_token_ids: tokens of the prompt; only the repetition penalty looks at them.
        output_token_ids: tokens emitted so far, then the drafted ones on the path to this row.
        eos_token_ids: the model's own end tokens, which `min_tokens` holds back.
        bad_words: token ids of each banned word; the last one is banned where the ones before it
            end the output.

    Raises:
        ValueError: NaN or +inf in the row, no token left, a token id outside 0..V-1.
    """
    row = _checked(logits)
    _check_ids(len(row), prompt_token_ids, output_token_ids, sampling.logit_bias)
    if sampling.allowed_token_ids is not None:
        row = ban(row, set(range(len(row))) - set(sampling.allowed_token_ids))
    row = ban(row, [word[-1] for word in bad_words if _begun(word, output_token_ids)])
    if len(output_token_ids) < sampling.min_tokens:
        row = ban(row, [*eos_token_ids, *sampling.stop_token_ids])
    row = [x + sampling.logit_bias.get(token, 0.0) for token, x in enumerate(row)]
    row = penalise(row, sampling, prompt_token_ids, output_token_ids)
    if max(row) == -math.inf:
        raise ValueError(f"none of {len(row)} tokens is left; the processors rule all of them out")
    if sampling.temperature < GREEDY_BELOW:
        return one_hot(argmax(row), len(row))
    law = softmax(row, sampling.temperature)
    law = keep_min_p(law, sampling.min_p)
    law = keep_top_k(law, max(sampling.top_k, 0), by=row)
    return keep_top_p(law, sampling.top_p) if sampling.top_p < 1 else law


def ban(row: Sequence[float], tokens: Collection[int]) -> list[float]:
    """`row` (shape V) with the logits of `tokens` at -inf.

    Raises:
        ValueError: a token outside 0..V-1.
    """
    _check_ids(len(row), tokens)
    return [-math.inf if token in tokens else x for token, x in enumerate(row)]


def penalise(
    row: Sequence[float], sampling: Sampling, prompt: Sequence[int], output: Sequence[int]
) -> list[float]:
    """`row` (shape V, logits) after the three penalties.

    Repetition (Keskar et al., arXiv:1909.05858): the logit of a token in prompt or output is
    divided by the penalty where positive, multiplied where negative. Frequency: minus penalty
    times the number of occurrences in the output. Presence: minus penalty if it occurs there.
    """
    seen = {*prompt, *output}
    penalised = []
    for token, logit in enumerate(row):
        x = logit
        if token in seen:
            factor = sampling.repetition_penalty
            x = x / factor if x > 0 else x * factor
        count = output.count(token)
        x -= sampling.frequency_penalty * count
        x -= sampling.presence_penalty * (count > 0)
        penalised.append(x)
    return penalised


def softmax(row: Sequence[float], temperature: float) -> tuple[Number, ...]:
    """The law (shape V) with probabilities proportional to exp(logit / temperature)."""
    best = max(row)
    return normalise([math.exp((x - best) / temperature) for x in row])


def _begun(word: Sequence[int], output: Sequence[int]) -> bool:
    """Whether the output ends with all of `word` but its last token."""
    before = list(word[:-1])
    return len(word) > 0 and list(output[len(output) - len(before) :]) == before


def _checked(logits: Sequence[float]) -> list[float]:
    for token, x in enumerate(logits):
        if math.isnan(x) or x == math.inf:
            raise ValueError(f"logit of token {token} is {x}, expected a finite number or -inf")
    if not logits:
        raise ValueError("the row of logits is empty, expected one logit for each token")
    return [float(x) for x in logits]


def _check_ids(size: int, *groups: Collection[int]) -> None:
    for token in (token for group in groups for token in group):
        if not 0 <= token < size:
            raise ValueError(f"token {token} is outside the vocabulary of {size}")
