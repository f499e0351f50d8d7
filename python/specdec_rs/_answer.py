"""A request under way: its steps as the engine tells them, its output once it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdec_rs._core import Engine, Request
from specdec_rs._prompts import Encoded
from specdec_rs.outputs import (
    CompletionOutput,
    Logprob,
    RequestMetrics,
    RequestOutput,
    SpeculativeDecodingStats,
    StreamChunk,
)
from specdec_rs.params import SamplingParams

if TYPE_CHECKING:
    from specdec_rs._core import _End, _Logprobs


class Answer:
    """One prompt's answer, filled step by step."""

    def __init__(
        self, engine: Engine, prompt: Encoded, params: SamplingParams, *, speculative: bool
    ) -> None:
        self._request: Request = engine.submit(prompt.token_ids, params)
        self._engine = engine
        self._prompt = prompt
        self._params = params
        self._speculative = speculative
        self._texts: list[str] = []
        self._token_ids: list[int] = []
        self._logprobs: list[dict[int, Logprob]] = []
        self._cumulative = 0.0
        self.output: RequestOutput | None = None

    def cancel(self) -> None:
        """Let the engine drop the request at its next step."""
        self._request.cancel()

    def wait(self) -> RequestOutput:
        """All steps up to the end."""
        while self.output is None:
            self.step()
        return self.output

    def step(self) -> StreamChunk:
        """The next step; not to be called after the last one."""
        step = self._request.next()
        self._texts.append(step["text"])
        self._token_ids += step["token_ids"]
        for entry in step["logprobs"]:
            self._cumulative += entry["logprob"]
            self._logprobs.append(self._by_id(entry))
        end = step["end"]
        if end is not None:
            self.output = self._finish(end)
        return StreamChunk(
            text=step["text"],
            token_ids=step["token_ids"],
            from_draft=step["from_draft"],
            finish_reason=end["finish_reason"] if end else None,
            output=self.output,
        )

    def _by_id(self, entry: _Logprobs) -> dict[int, Logprob]:
        ranked = [(token, logprob, i + 1) for i, (token, logprob) in enumerate(entry["top"])]
        ranked.append((entry["token"], entry["logprob"], entry["rank"]))
        return {
            token: Logprob(logprob, rank, self._engine.decode([token], skip_special=False))
            for token, logprob, rank in ranked
        }

    def _finish(self, end: _End) -> RequestOutput:
        asked = self._params.logprobs is not None
        answer = CompletionOutput(
            index=0,
            text="".join(self._texts),
            token_ids=self._token_ids,
            cumulative_logprob=self._cumulative if asked else None,
            logprobs=self._logprobs if asked else None,
            finish_reason=end["finish_reason"],
            stop_reason=self._stop_reason(end),
        )
        return RequestOutput(
            request_id=str(self._request.id),
            prompt=self._prompt.text,
            prompt_token_ids=self._prompt.token_ids,
            outputs=[answer],
            finished=True,
            metrics=self._metrics(end),
        )

    def _stop_reason(self, end: _End) -> int | str | None:
        token = end["stop_token"]
        if token is not None and token in self._engine.end_token_ids:
            # The model's own end counts first, as in vLLM, unless it is to be ignored.
            return token if self._params.ignore_eos else None
        return end["stop_text"] if token is None else token

    def _metrics(self, end: _End) -> RequestMetrics:
        after_first = len(self._token_ids) - 1
        time = end["generation_time"]
        stats = SpeculativeDecodingStats(**end["speculation"]) if self._speculative else None
        return RequestMetrics(
            queue_time_ms=end["queue_time"] * 1e3,
            time_to_first_token_ms=end["time_to_first_token"] * 1e3,
            generation_time_ms=time * 1e3,
            mean_itl_ms=time * 1e3 / after_first if after_first else None,
            tokens_per_second=after_first / time if after_first and time else None,
            speculative_decoding=stats,
        )
