"""`AsyncLLM`: the same engine for asyncio."""

from __future__ import annotations

import os
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, replace
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypedDict, TypeVar, Unpack

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

if TYPE_CHECKING:
    from specdec_rs._ready import Waiter

__all__ = ["AsyncLLM", "LLMOptions"]

T = TypeVar("T")

# Prompts that are read at once. Only reading takes one of these threads, not waiting.
_MOST_READING = 4


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

    def begin(self, answer: Answer) -> Answer:
        self.answer = answer
        # An abort that came meanwhile has seen this answer, or is seen here.
        if self.aborted:
            answer.cancel()
        return answer

    def abort(self) -> None:
        self.aborted = True
        if self.answer is not None:
            self.answer.cancel()


class AsyncLLM:
    """An `LLM` whose answers are asynchronous iterators.

    Requests of any number of tasks, in any number of event loops, run together. No loop is ever
    blocked and no request holds a thread: prompts are read on a few threads of this object, and
    another one wakes the tasks whose requests got on. Making it blocks while the model loads. It is
    an asynchronous context manager: `async with AsyncLLM(...) as llm` ends with its `shutdown`.

    Args:
        model: as for `LLM`.
        **options: as for `LLM`.

    Raises:
        SpecdecError: as `LLM`.
    """

    def __init__(self, model: str | PathLike[str], **options: Unpack[LLMOptions]) -> None:
        from specdec_rs._ready import Pump  # noqa: PLC0415 - brings asyncio

        self._llm = LLM(model, **options)
        self._process = os.getpid()
        self._threads = ThreadPoolExecutor(_MOST_READING, thread_name_prefix="specdec-read")
        self._pump = Pump()
        weakref.finalize(self, self._pump.close)
        self._open: dict[str, _Open] = {}

    async def generate(
        self,
        prompt: Prompt,
        sampling_params: SamplingParams | None = None,
        *,
        request_id: str | None = None,
    ) -> AsyncGenerator[RequestOutput, None]:
        """Answer one prompt; each output holds all that was said so far, the last is finished.

        An output comes for each step of the engine, or for several steps together if they were
        taken while nobody asked for the next output. Of several answers (`n`), each output holds
        what all of them have said.

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

    async def abort(self, request_id: str | Iterable[str]) -> None:
        """End a request, or several; each iteration ends with what was said, without metrics.

        Its `finish_reason` is "abort". A request that has ended, or never was, is no error.

        Raises:
            ConfigError: not an id or a list of them.
        """
        for name in check.strings("request_id", request_id):
            request = self._open.get(name)
            if request is not None:
                request.abort()

    async def check_health(self) -> None:
        """Return if the engine can be asked.

        Raises:
            EngineDeadError: it stopped after a fault.
            ClosedError: it was shut down.
        """
        self._llm.get_metrics()

    async def get_metrics(self) -> EngineMetrics:
        """As `LLM.get_metrics`."""
        return self._llm.get_metrics()

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
        # What waits for a thread gets one, and there the engine's own word that it is closed.
        self._threads.shutdown(wait=False)
        self._pump.close()

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
        from specdec_rs._ready import Waiter  # noqa: PLC0415 - brings asyncio

        request, tag = _Open(), self._pump.tag()
        # Nothing is awaited before a given name is taken, so no other request can take it too.
        name = None if request_id is None else self._take(request_id, request)
        try:
            answer = await self._in_thread(
                lambda: request.begin(self._llm.submit(encode(), params, self._pump.ready, tag))
            )
            name = name or self._take_number(answer.request_id, request)
            waiter = Waiter()
            self._pump.add(tag, waiter)
            while not await _news(answer, waiter):
                yield replace(answer.partial(), request_id=name)
            last = answer.output or answer.partial(aborted=True)
        finally:
            self._pump.discard(tag)
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

        if os.getpid() != self._process:
            # The pool's threads did not survive a fork; the engine says so in its own words.
            return work()
        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._threads, work)
        except RuntimeError:
            # The pool is shut down; so is the engine, and it says so.
            return work()
        return await waiting


async def _news(answer: Answer, waiter: Waiter) -> bool:
    """Wait until the answer has got on; whether that was its end, its own or by an abort."""
    import asyncio  # noqa: PLC0415 - whoever awaits this has loaded it

    waiter.here()
    try:
        found = answer.take()
        if found:
            # Other tasks get their turn although there is nothing to wait for.
            await asyncio.sleep(0)
        while not found:
            await waiter.wait()
            found = answer.take()
    except RequestAborted:
        return True
    return answer.output is not None
