"""What a request asks for: `SamplingParams`, in vLLM's words and meanings."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specdec_rs import _checks as check
from specdec_rs._parameters import Check, Parameters, integer, number, optional

__all__ = ["SamplingParams"]

# OpenAI's limit, which the engine keeps.
MAX_LOGPROBS = 20
# The engine's own limit: all stop strings are looked for at every token.
MAX_STOP_BYTES = 1 << 16
# The answers to one prompt are one request, so the queue's limit does not hold back their number.
MAX_ANSWERS = 1024


@dataclass(frozen=True, kw_only=True)
class SamplingParams(Parameters):
    """How the tokens of one request are chosen, when it ends, and what is reported.

    Frozen; make a changed copy with `dataclasses.replace`. Every value is checked here, before
    any model is touched; a bad one raises `ConfigError` (a `ValueError`).

    Attributes:
        n: number of answers for the prompt, at most 1024. With a seed each is a function of the
            seed and its index, so they are drawn apart; with `temperature=0` all are equal. All
            together take one place in the engine's queue.
        temperature: 0 is greedy (the most likely token, lowest id on ties); otherwise logits are
            divided by it.
        top_p: keep the smallest set of most likely tokens whose mass reaches `top_p`; 1 is off.
        top_k: keep the `top_k` most likely tokens; 0 or -1 is off.
        min_p: drop tokens less likely than `min_p` times the most likely one; 0 is off.
        seed: makes the text a function of weights, prompt, parameters and seed alone, with and
            without speculation. None: `LLM(seed=...)` and the order of requests decide it, so
            calls differ, but a new process that makes the same calls gets the same texts.
        max_tokens: most tokens to generate; None is the rest of the context. (vLLM's default of
            16 surprises newcomers; here it is 256.)
        min_tokens: no end token, no `stop_token_ids` and no end of a `stop` string within this
            many tokens.
        stop: strings that end the text; they are not part of it. At most 65,536 bytes together.
        stop_token_ids: token ids that end the text.
        ignore_eos: go on past the model's end token.
        include_stop_str_in_output: leave the stop string (or the text of the stop token) at the end
            of the text.
        skip_special_tokens: leave special tokens out of the text; else their names are in it.
        presence_penalty: vLLM's meaning, -2 to 2.
        frequency_penalty: vLLM's meaning, -2 to 2.
        repetition_penalty: vLLM's meaning, above 0; 1 is off.
        logit_bias: token id to a number added to its logit.
        allowed_token_ids: only these tokens can be generated.
        bad_words: texts that are never generated, each as the tokens that it makes alone and after
            a space (one of blanks only, a line break say, just alone); where other tokens spell it
            (" Paris" may be one token, for "Par"), it can still come.
        logprobs: report the log-probability of each token and of this many most likely ones, at
            most 20 (raw log-softmax of the model, before temperature and filters). vLLM's -1, the
            whole vocabulary, is refused: for each token it would be tens of megabytes.
        prompt_logprobs: the same for the prompt's tokens; the first has none.
        prediction: text that the answer will resemble: prompt lookup looks there too. No change of
            law; without prompt lookup, no effect.
    """

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    max_tokens: int | None = 256
    min_tokens: int = 0
    stop: str | Sequence[str] | None = None
    stop_token_ids: Sequence[int] | None = None
    ignore_eos: bool = False
    include_stop_str_in_output: bool = False
    skip_special_tokens: bool = True
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] | None = None
    allowed_token_ids: Sequence[int] | None = None
    bad_words: str | Sequence[str] | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    prediction: str | None = None

    def __post_init__(self) -> None:
        self._settle(_CHECKS)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise check.wrong(
                "min_tokens", self.min_tokens, f"at most max_tokens={self.max_tokens}"
            )

    @property
    def greedy(self) -> bool:
        """Whether every token is the most likely one."""
        return self.temperature == 0


def _top_k(name: str, value: object) -> int:
    # vLLM writes "off" as 0 and, in older code, as -1.
    return max(check.integer(name, value, -1, check.U32_MAX), 0)


def _logit_bias(name: str, value: object) -> dict[int, float]:
    if not isinstance(value, Mapping):
        raise check.wrong(name, value, "a mapping of token ids to numbers")
    return {
        check.integer(f"{name} key", token, 0, check.U32_MAX): check.number(
            f"{name}[{token}]", bias
        )
        for token, bias in value.items()
    }


def _stop(name: str, value: object) -> tuple[str, ...]:
    stops = check.strings(name, value)
    if sum(len(stop.encode()) for stop in stops) > MAX_STOP_BYTES:
        raise check.wrong(name, value, f"at most {MAX_STOP_BYTES} bytes of text together")
    return stops


def _logprobs(name: str, value: object) -> int:
    if isinstance(value, numbers.Integral) and value == -1:
        raise check.wrong(
            name,
            value,
            f"a number of likeliest tokens, at most {MAX_LOGPROBS}: the law of the "
            "whole vocabulary at every token would fill the memory",
        )
    return check.integer(name, value, 0, MAX_LOGPROBS)


_CHECKS: dict[str, Check] = {
    "n": integer(1, MAX_ANSWERS),
    "temperature": number(0),
    "top_p": number(0, 1, open_low=True),
    "top_k": _top_k,
    "min_p": number(0, 1),
    "seed": optional(integer(0, check.U64_MAX)),
    "max_tokens": optional(integer(1, check.U32_MAX)),
    "min_tokens": integer(0, check.U32_MAX),
    "stop": optional(_stop),
    "stop_token_ids": optional(check.token_ids),
    "ignore_eos": check.flag,
    "include_stop_str_in_output": check.flag,
    "skip_special_tokens": check.flag,
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "repetition_penalty": number(0, open_low=True),
    "logit_bias": optional(_logit_bias),
    "allowed_token_ids": optional(check.token_ids),
    "bad_words": optional(check.strings),
    "logprobs": optional(_logprobs),
    "prompt_logprobs": optional(_logprobs),
    "prediction": optional(check.text),
}
