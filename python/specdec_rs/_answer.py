"""A request under way: its steps as the engine tells them, its output once it has ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specdec_rs._core import Engine, ReadyQueue, Request
from specdec_rs._prompts import Encoded
from specdec_rs._stats import merged
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
    from specdec_rs._core import _End, _Logprobs, _Step


class Answer:
    """The answers to one prompt, `params.n` of them, filled step by step.

    Read either by `step` or by `take`; the latter after `ready` has announced `tag`.
    """

    def __init__(
        self,
        engine: Engine,
        prompt: Encoded,
        params: SamplingParams,
        *,
        speculative: bool,
        ready: ReadyQueue | None = None,
        tag: int = 0,
    ) -> None:
        self._engine = engine
        self._prompt = prompt
        self._params = params
        self._speculative = speculative
        self.output: RequestOutput | None = None
        requests = engine.submit(prompt.token_ids, params, ready, tag)
        self._samples = [
            _Sample(engine, request, params, index) for index, request in enumerate(requests)
        ]

    def cancel(self) -> None:
        """Give the request's place in the queue to others; the engine drops it at its next step."""
        for sample in self._samples:
            sample.request.cancel()

    def wait(self) -> RequestOutput:
        """All steps up to the end."""
        while self.output is None:
            self.step()
        return self.output

    def step(self) -> StreamChunk:
        """The next step of an answer that has not ended; not to be called after the last one."""
        sample = next(sample for sample in self._samples if sample.end is None)
        step = sample.step()
        self._look_for_the_end()
        return StreamChunk(
            text=step["text"],
            token_ids=step["token_ids"],
            from_draft=step["from_draft"],
            finish_reason=step["end"]["finish_reason"] if step["end"] else None,
            output=self.output,
        )

    def take(self) -> bool:
        """Take the steps that are there, without waiting; whether there were any."""
        found = sum(sample.take() for sample in self._samples if sample.end is None)
        if found:
            self._look_for_the_end()
        return found > 0

    def _look_for_the_end(self) -> None:
        if all(sample.end is not None for sample in self._samples):
            self.output = self._finish()

    @property
    def request_id(self) -> str:
        """The engine's number of the first answer."""
        return str(self._samples[0].request.id)

    def partial(self, *, aborted: bool = False) -> RequestOutput:
        """What there is so far, without times; `aborted`: and nothing will follow."""
        outputs = [sample.output() for sample in self._samples]
        if aborted:
            outputs = [
                output if output.finish_reason else replace(output, finish_reason="abort")
                for output in outputs
            ]
        return RequestOutput(
            request_id=self.request_id,
            prompt=self._prompt.text,
            prompt_token_ids=self._prompt.token_ids,
            outputs=outputs,
            finished=aborted,
            metrics=RequestMetrics(0.0, None, 0.0, None, None),
        )

    def _finish(self) -> RequestOutput:
        ends = [sample.end for sample in self._samples if sample.end is not None]
        heard = None
        if self._params.prompt_logprobs is not None:
            heard = [None, *(_by_id(self._engine, entry) for entry in ends[0]["prompt_logprobs"])]
        return RequestOutput(
            request_id=self.request_id,
            prompt=self._prompt.text,
            prompt_token_ids=self._prompt.token_ids,
            outputs=[sample.output() for sample in self._samples],
            finished=True,
            metrics=self._metrics(ends),
            prompt_logprobs=heard,
            num_cached_tokens=ends[0]["num_cached_tokens"],
        )

    def _metrics(self, ends: list[_End]) -> RequestMetrics:
        after_first = sum(len(sample.token_ids) - 1 for sample in self._samples)
        time = max(end["generation_time"] for end in ends)
        stats = [SpeculativeDecodingStats(**end["speculation"]) for end in ends]
        return RequestMetrics(
            queue_time_ms=min(end["queue_time"] for end in ends) * 1e3,
            time_to_first_token_ms=min(end["time_to_first_token"] for end in ends) * 1e3,
            generation_time_ms=time * 1e3,
            mean_itl_ms=time * 1e3 / after_first if after_first else None,
            tokens_per_second=after_first / time if after_first and time else None,
            num_preemptions=sum(end["num_preemptions"] for end in ends),
            speculative_decoding=merged(stats) if self._speculative else None,
        )


class _Sample:
    """One of the answers to a prompt."""

    def __init__(
        self, engine: Engine, request: Request, params: SamplingParams, index: int
    ) -> None:
        self.request = request
        self.token_ids: list[int] = []
        self.end: _End | None = None
        self._engine = engine
        self._params = params
        self._index = index
        self._texts: list[str] = []
        self._logprobs: list[dict[int, Logprob]] = []
        self._cumulative = 0.0

    def step(self) -> _Step:
        step = self.request.next()
        self._add(step)
        return step

    def take(self) -> int:
        found = 0
        while self.end is None and (step := self.request.poll()):
            self._add(step)
            found += 1
        return found

    def _add(self, step: _Step) -> None:
        self._texts.append(step["text"])
        self.token_ids += step["token_ids"]
        for entry in step["logprobs"]:
            self._cumulative += entry["logprob"]
            self._logprobs.append(_by_id(self._engine, entry))
        self.end = step["end"]

    def output(self) -> CompletionOutput:
        asked = self._params.logprobs is not None
        return CompletionOutput(
            index=self._index,
            text="".join(self._texts),
            token_ids=list(self.token_ids),
            cumulative_logprob=self._cumulative if asked else None,
            logprobs=list(self._logprobs) if asked else None,
            finish_reason=self.end["finish_reason"] if self.end else None,
            stop_reason=self._stop_reason(self.end) if self.end else None,
        )

    def _stop_reason(self, end: _End) -> int | str | None:
        token = end["stop_token"]
        if token is not None and token in self._engine.end_token_ids:
            # The model's own end counts first, as in vLLM, unless it is to be ignored.
            return token if self._params.ignore_eos else None
        return end["stop_text"] if token is None else token


def _by_id(engine: Engine, entry: _Logprobs) -> dict[int, Logprob]:
    ranked = [(token, logprob, i + 1) for i, (token, logprob) in enumerate(entry["top"])]
    ranked.append((entry["token"], entry["logprob"], entry["rank"]))
    return {
        token: Logprob(logprob, rank, engine.decode([token], skip_special=False))
        for token, logprob, rank in ranked
    }
