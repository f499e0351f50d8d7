"""Our engine, driven as a caller drives it, on instructions of choice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specdec_rs import SamplingParams
from specdec_rs._core import Engine

# Prompts that nothing can have cached: each begins with another token.
_FRESH = itertools.count(1000)


class Ours:
    """A loaded model without speculation, one sequence at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def decode(self, tokens: int, depth: int) -> float:
        """Tokens per second of plain decoding behind `depth` tokens, the first token left out."""
        return tokens / self._answer(depth, tokens + 1)[1]

    def prefill(self, tokens: int) -> float:
        """Tokens per second of reading a prompt, up to the first token."""
        return tokens / self._answer(tokens, 1)[0]

    def _answer(self, prompt: int, tokens: int) -> tuple[float, float]:
        """Seconds to the first token, and from there to the last."""
        first = next(_FRESH)
        vocab = self._engine.vocab_size
        ids = [first % vocab, *((first + 7919 * i) % vocab for i in range(1, prompt))]
        params = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
        (request,) = self._engine.submit(ids, params)
        while (end := request.next()["end"]) is None:
            pass
        return end["time_to_first_token"], end["generation_time"]


@contextmanager
def ours(model: Path, threads: int, level: str | None = None) -> Iterator[Ours]:
    """The model loaded, and warm after one short answer."""
    engine = Engine.load(
        model,
        max_model_len=2048,
        max_num_seqs=1,
        num_threads=threads,
        seed=0,
        speculation=None,
        chat_template=None,
        progress=None,
        level=level,
    )
    try:
        loaded = Ours(engine)
        loaded.decode(8, 64)
        yield loaded
    finally:
        engine.close()
