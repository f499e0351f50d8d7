"""What callers may give as a prompt, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from specdec_rs import _checks as check
from specdec_rs._core import Engine
from specdec_rs.errors import ConfigError
from specdec_rs.params import SamplingParams

__all__ = ["Prompt", "TextPrompt", "TokensPrompt"]


class TextPrompt(TypedDict):
    """A prompt as text; special tokens written in it are special tokens."""

    prompt: str


class TokensPrompt(TypedDict):
    """A prompt as token ids."""

    prompt_token_ids: Sequence[int]


Prompt = str | TextPrompt | TokensPrompt

_PROMPT = 'a string, {"prompt": str} or {"prompt_token_ids": [int, ...]}'


@dataclass(frozen=True)
class Encoded:
    """A prompt ready for the engine: its text, if there is one, and its tokens."""

    text: str | None
    token_ids: list[int]


def encode(engine: Engine, prompt: object, name: str = "prompt") -> Encoded:
    """One prompt of any kind.

    Raises:
        ConfigError: it is none.
    """
    if isinstance(prompt, str):
        return Encoded(prompt, engine.encode(sound(name, prompt), specials=True))
    if not isinstance(prompt, Mapping):
        raise check.wrong(name, prompt, _PROMPT)
    if set(prompt) == {"prompt"} and isinstance(prompt["prompt"], str):
        return encode(engine, prompt["prompt"], name)
    if set(prompt) == {"prompt_token_ids"}:
        ids = check.token_ids(f"{name}['prompt_token_ids']", prompt["prompt_token_ids"])
        return Encoded(None, list(ids))
    raise check.wrong(name, prompt, _PROMPT)


def several(name: str, value: object) -> list[object]:
    """The prompts of a call: one, or a list of them."""
    if isinstance(value, (str, Mapping)):
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return list(value)
    raise check.wrong(name, value, f"{_PROMPT}, or a list of these")


def params_for(count: int, params: object) -> list[SamplingParams]:
    """Parameters for `count` prompts: the same for all, or one each."""
    expected = f"a SamplingParams, a list of {count} of them, or None"
    if params is None:
        params = SamplingParams()
    if isinstance(params, SamplingParams):
        return [params] * count
    if isinstance(params, (str, Mapping)) or not isinstance(params, Iterable):
        raise check.wrong("sampling_params", params, expected)
    each = list(params)
    if len(each) != count or not all(isinstance(one, SamplingParams) for one in each):
        raise check.wrong("sampling_params", params, expected)
    return each


def sound(name: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{name}: a lone surrogate at {error.start} is no character") from None
    return text
