"""`AsyncLLM`: the same engine for asyncio."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, replace
from os import PathLike
from types import TracebackType
from typing import Literal, Self, TypedDict, TypeVar, Unpack

from specdec_rs import _checks as check
from specdec_rs import _prompts
from specdec_rs._answer import Answer
from specdec_rs._prompts import Conversation, Encoded, Prompt
from specdec_rs.errors import ConfigError, RequestAborted
from specdec_rs.llm import LLM
from specdec_rs.outputs import EngineMetrics, MemoryReport, RequestOutput
from specdec_rs.params import SamplingParams
from specdec_rs.speculative import SpeculativeConfig
from specdec_rs.tokenizer import Tokenizer

__all__ = ["AsyncLLM", "LLMOptions"]

T = TypeVar("T")

# A step that waits holds a thread, and waiting costs no more than its stack.
_MOST_WAITING = 1024


class LLMOptions(TypedDict, total=False):
    """What `LLM` takes beside the model; its documentation holds here too."""

    tokenizer: str | None
    dtype: Literal["auto"]
    quantization: Literal["q4_0", "q8_0"] | None
    device: Literal["cpu", "cuda"]
    max_model_len: int | None
    max_num_seqs: int
    max_queued_requests: int
    seed: int
    num_threads: int | None
    enable_prefix_caching: bool
    memory_budget: int | str | None
    speculative_config: Literal["auto"] | Mapping[str, object] | SpeculativeConfig | None
    chat_template: str | None
    revision: str | None


@dataclass(eq=False)
class _Open:
    """A request that has its name, and its answer as soon as the engine has taken it."""

    answer: Answer | None = None
    aborted: bool = False

    def begin(self, answer: Answer) -> None:
        self.answer = answer
        if self.aborted:
            answer.cancel()

    def abort(self) -> None:
        self.aborted = True
        if self.answer is not None:
            self.answer.cancel()


class AsyncLLM:
    """An `LLM` whose answers are asynchronous iterators.

    Requests of any number of tasks run together. The event loop is never blocked: each wait is on
    a thread of this object. Making it blocks while the model loads. It is an asynchronous context
    manager: `async with AsyncLLM(...) as llm` ends with its `shutdown`.

    Args:
        model: as for `LLM`.
        **options: as for `LLM`.

    Raises:
        SpecdecError: as `LLM`.
    """

    def __init__(self, model: str | PathLike[str], **options: Unpack[LLMOptions]) -> None:
        self._llm = LLM(model, **options)
        self._threads = ThreadPoolExecutor(_MOST_WAITING, thread_name_prefix="specdec-wait")
        self._open: dict[str, _Open] = {}

    async def generate(
        self,
        prompt: Prompt,
        sampling_params: SamplingParams | None = None,
        *,
        request_id: str | None = None,
    ) -> AsyncGenerator[RequestOutput, None]:
        """Answer one prompt; each output holds all that was said so far, the last is finished.

        Leaving the iteration (by `aclose`, or by cancelling its task) cancels the request.

        Args:
            prompt: as for `LLM.generate`.
            sampling_params: None is `SamplingParams()`.
            request_id: a name for `abort`, not that of an open request; None: the engine's number,
                with "'" behind it where a request was given that name.

        Raises:
            ConfigError: a request of that `request_id` is open.
            QueueFullError: as many requests wait as the engine takes.
            SpecdecError: as `LLM.generate`.
        """
        (params,) = _prompts.params_for(1, sampling_params)
        run = self._run(lambda: _prompts.encode(self._llm.engine, prompt), params, request_id)
        async with aclosing(run) as outputs:
            async for output in outputs:
                yield output

    async def chat(
        self,
        messages: Conversation,
        sampling_params: SamplingParams | None = None,
        *,
        request_id: str | None = None,
    ) -> AsyncGenerator[RequestOutput, None]:
        """Answer one conversation through the model's chat template; otherwise as `generate`."""
        (params,) = _prompts.params_for(1, sampling_params)
        run = self._run(lambda: _prompts.render(self._llm.engine, messages), params, request_id)
        async with aclosing(run) as outputs:
            async for output in outputs:
                yield output

    async def abort(self, request_id: str) -> None:
        """End a request; its iteration ends with what was said, `finish_reason` "abort".

        A request that has ended, or never was, is no error.
        """
        request = self._open.get(request_id)
        if request is not None:
            request.abort()

    async def check_health(self) -> None:
        """Return if the engine can be asked.

        Raises:
            EngineDeadError: it stopped after a fault.
            ClosedError: it was shut down.
        """
        await self._in_thread(self._llm.get_metrics)

    async def get_metrics(self) -> EngineMetrics:
        """As `LLM.get_metrics`."""
        return await self._in_thread(self._llm.get_metrics)

    @property
    def memory(self) -> MemoryReport:
        """As `LLM.memory`."""
        return self._llm.memory

    def get_tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self._llm.get_tokenizer()

    def shutdown(self) -> None:
        """End the engine and free its memory; open requests get `ClosedError`.

        A second call does nothing.
        """
        self._llm.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import asyncio  # noqa: PLC0415 - whoever awaits this has loaded it

        # The engine ends after the step in flight; not on a thread of the pool that ends with it.
        await asyncio.to_thread(self.shutdown)

    async def _run(
        self, encode: Callable[[], Encoded], params: SamplingParams, request_id: str | None
    ) -> AsyncGenerator[RequestOutput, None]:
        request = _Open()
        # Nothing is awaited before a given name is taken, so no other request can take it too.
        name = None if request_id is None else self._take(request_id, request)
        try:
            prompt = await self._in_thread(encode)
            answer = await self._in_thread(lambda: self._llm.submit(prompt, params))
            name = name or self._take_number(answer.request_id, request)
            request.begin(answer)
            last = answer.partial(aborted=True) if request.aborted else None
            while last is None:
                try:
                    last = (await self._in_thread(answer.step)).output
                except RequestAborted:
                    last = answer.partial(aborted=True)
                if last is None:
                    yield replace(answer.partial(), request_id=name)
        finally:
            if name is not None:
                del self._open[name]
            request.abort()
        yield replace(last, request_id=name)

    def _take(self, name: str, request: _Open) -> str:
        if self._open.setdefault(check.text("request_id", name), request) is not request:
            raise ConfigError(f"request_id: found {name!r}, which is open; choose another")
        return name

    def _take_number(self, number: str, request: _Open) -> str:
        while self._open.setdefault(number, request) is not request:
            number += "'"
        return number

    async def _in_thread(self, work: Callable[[], T]) -> T:
        import asyncio  # noqa: PLC0415 - whoever awaits this has loaded it

        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._threads, work)
        except RuntimeError:
            # The pool is shut down; the engine says so in its own words.
            return work()
        return await waiting
