"""The tokenizer of a loaded model."""

from __future__ import annotations

from collections.abc import Iterable

from specdec_rs import _checks as check
from specdec_rs._core import Engine

__all__ = ["Tokenizer"]


class Tokenizer:
    """Text to token ids and back, as the model of an `LLM` does it. Closed with the `LLM`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids of `text`.

        Args:
            text: any text.
            add_special_tokens: read it as `generate` reads a prompt: special tokens written in it
                are special tokens, and the one that begins a sequence is added if the model
                expects it. False: plain text, from which no special token can come.
        """
        specials = check.flag("add_special_tokens", add_special_tokens)
        given = check.unicode("text", text)
        return self._engine.encode(given, specials=specials, prompt=False)

    def decode(self, token_ids: int | Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """The text of one or several ids; bytes that are no UTF-8 become U+FFFD."""
        skip = check.flag("skip_special_tokens", skip_special_tokens)
        given = [token_ids] if isinstance(token_ids, int) else token_ids
        ids = check.token_ids("token_ids", given)
        return self._engine.decode(ids, skip_special=skip)

    @property
    def vocab_size(self) -> int:
        """Size of the model's vocabulary."""
        return self._engine.vocab_size

    @property
    def bos_token_id(self) -> int | None:
        """The token that begins a sequence."""
        return self._engine.bos_token_id

    @property
    def eos_token_id(self) -> int | None:
        """The token that ends a sequence."""
        return self._engine.eos_token_id

    @property
    def end_token_ids(self) -> list[int]:
        """The tokens that end an answer."""
        return self._engine.end_token_ids
