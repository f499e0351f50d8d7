"""`LLM`: a model that answers prompts, in vLLM's words."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from types import TracebackType
from typing import Literal, Never, Self

from specdec_rs import _checks as check
from specdec_rs import _prompts
from specdec_rs._answer import Answer
from specdec_rs._core import Engine, ReadyQueue
from specdec_rs._prompts import Conversation, Encoded, Prompt
from specdec_rs.errors import (
    NotSupportedYetError,
    QueueFullError,
    ReentryError,
    RequestAborted,
    SpecdecError,
)
from specdec_rs.outputs import EngineMetrics, MemoryReport, RequestOutput, StreamChunk
from specdec_rs.params import SamplingParams
from specdec_rs.progress import loading, to_stderr
from specdec_rs.speculative import SpeculativeConfig
from specdec_rs.tokenizer import Tokenizer

__all__ = ["LLM", "TextStream"]


class LLM:
    """A loaded model, with exact speculative decoding.

    Any number of threads may use one `LLM`; their requests run together. It is a context manager
    and can be closed; one that is only dropped frees its memory too. It does not survive a fork:
    make it in the process that uses it.

    Args:
        model: catalogue name (`specdec fetch` lists them), GGUF file, folder with one or with
            `config.json` and safetensors, or hub id.
        tokenizer: None: the one in the model file.
        dtype: "auto": as the file has it.
        quantization: "q4_0" or "q8_0": weights are quantised to it at load where that makes them
            smaller (a checkpoint in F16 or BF16, say), which changes the model; None: as the file
            has them.
        device: "cpu".
        max_model_len: positions of a context, prompt and answer together; None: the model's own.
        max_num_seqs: most requests that run together; more wait.
        max_queued_requests: most requests that are open beside `max_num_seqs`, one with `n` answers
            counted once; a request beyond them is `QueueFullError`, but `generate` and `chat` wait
            for their own. A request that ended, was closed or was cancelled makes room at once.
        seed: for requests without a seed of their own. With the order of requests it decides their
            texts, so a new process that makes the same calls repeats them; one text is repeated,
            whatever came before, by `SamplingParams.seed`.
        num_threads: threads of a step; None: what the machine and its limits allow.
        enable_prefix_caching: keep the cache of texts while there is room, for later requests that
            begin alike; never changes the text.
        memory_budget: bytes for weights, caches and activations together, as a number or a text
            such as "4GiB"; what is left beyond weights and activations becomes cache, up to
            `max_num_seqs` whole contexts (each with room for a draft, in whole pages). With a draft
            model and `method="auto"`, the draft is left out (with a warning) rather than fewer
            requests run. None: a cache of `max_num_seqs` whole contexts, at most 2 GiB but one.
        speculative_config: "auto" (today prompt lookup with 4 tokens), None (off), or a dict or
            `SpeculativeConfig`; `{"method": "draft_model", "model": NAME}` drafts with a second
            model. Never changes the text.
        chat_template: Jinja source for `chat`; None: the one in the model file.
        revision: branch, tag or commit of a hub id.

    Raises:
        ConfigError: a wrong argument, before anything is loaded.
        NotSupportedYetError: an argument that this version cannot honour.
        ModelNotFoundError: no such model.
        ModelLoadError: the model cannot be used.
        MemoryBudgetError: it does not fit into `memory_budget`.
    """

    def __init__(
        self,
        model: str | PathLike[str],
        *,
        tokenizer: str | None = None,
        dtype: Literal["auto"] = "auto",
        quantization: Literal["q4_0", "q8_0"] | None = None,
        device: Literal["cpu", "cuda"] = "cpu",
        max_model_len: int | None = None,
        max_num_seqs: int = 8,
        max_queued_requests: int = 4096,
        seed: int = 0,
        num_threads: int | None = None,
        enable_prefix_caching: bool = True,
        memory_budget: int | str | None = None,
        speculative_config: Literal["auto"]
        | Mapping[str, object]
        | SpeculativeConfig
        | None = "auto",
        chat_template: str | None = None,
        revision: str | None = None,
        **unknown: Never,
    ) -> None:
        if unknown:
            check.known_names("LLM", unknown, _arguments(type(self)))
        self._speculation = SpeculativeConfig.of(speculative_config)
        _refuse("tokenizer", tokenizer, None, "the model file's own is used")
        _refuse("dtype", dtype, "auto", "weights stay as the file has them")
        _refuse("device", device, "cpu", "this build computes on the CPU")
        if quantization is not None:
            check.choice("quantization", quantization, ("q4_0", "q8_0"))
        if chat_template is not None:
            check.text("chat_template", chat_template)
        max_model_len = _count("max_model_len", max_model_len, 2)
        max_num_seqs = check.integer("max_num_seqs", max_num_seqs, 1, 1024)
        max_queued = check.integer("max_queued_requests", max_queued_requests, 0, check.U32_MAX)
        num_threads = _count("num_threads", num_threads, 1)
        seed = check.integer("seed", seed, 0, check.U64_MAX)
        budget = None if memory_budget is None else check.size("memory_budget", memory_budget)
        enable_prefix_caching = check.flag("enable_prefix_caching", enable_prefix_caching)
        from specdec_rs.models import resolve  # noqa: PLC0415 - brings what downloads need

        path = resolve(model, revision=revision, progress=to_stderr())
        draft = self._speculation.model if self._speculation else None
        draft_path = resolve(draft, revision=None, progress=to_stderr()) if draft else None
        with loading() as progress:
            try:
                self._engine = Engine.load(
                    path,
                    max_model_len=max_model_len,
                    max_num_seqs=max_num_seqs,
                    num_threads=num_threads,
                    seed=seed,
                    speculation=self._speculation,
                    draft_model=draft_path,
                    max_queued=max_queued,
                    quantization=quantization,
                    memory_budget=budget,
                    enable_prefix_caching=enable_prefix_caching,
                    chat_template=chat_template,
                    progress=lambda done, total: progress.update(
                        done, total, f"loading {path.name}"
                    ),
                )
            except SpecdecError as error:
                beside = f" with the draft model {draft_path}" if draft_path else ""
                error.add_note(f"while loading {path}{beside}")
                raise
        self._memory = MemoryReport(**self._engine.memory)
        if self._memory.draft_left_out:
            words = f"memory_budget={memory_budget!r} runs fewer requests with the draft model"
            warnings.warn(f"{words} {draft!r}, so it was left out", stacklevel=2)

    def generate(
        self,
        prompts: Prompt | Iterable[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        use_tqdm: bool = True,
    ) -> list[RequestOutput]:
        """Answer prompts, up to `max_num_seqs` of them together.

        Args:
            prompts: one or several of: a text (special tokens written in it are special tokens),
                `{"prompt": text}`, `{"prompt_token_ids": ids}`.
            sampling_params: for all, or one for each; None is `SamplingParams()`.
            use_tqdm: show on a terminal how many are done.

        Returns:
            The outputs in the order of the prompts.

        Raises:
            SpecdecError: the first error in the order of the prompts; the other requests are
                cancelled then, as they are on Ctrl-C. The `LLM` can be used afterwards.
        """
        given = _prompts.several("prompts", prompts)
        return self._answer(
            len(given),
            lambda i: _prompts.encode(self._engine, given[i], f"prompts[{i}]"),
            sampling_params,
            use_tqdm,
        )

    def chat(
        self,
        messages: Conversation | Sequence[Conversation],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        chat_template: str | None = None,
        add_generation_prompt: bool = True,
        use_tqdm: bool = True,
    ) -> list[RequestOutput]:
        """Answer conversations through the model's chat template; otherwise as `generate`.

        Args:
            messages: one conversation (a list of `{"role": ..., "content": ...}`) or a list of
                them. Text in them never becomes a special token.
            sampling_params: for all, or one for each conversation.
            chat_template: Jinja source; None: what the `LLM` has.
            add_generation_prompt: end the prompt with the beginning of the assistant's turn.
            use_tqdm: show on a terminal how many are done.
        """
        given = _prompts.several_conversations(messages)
        form = _prompts.ChatForm(chat_template, add_generation_prompt)
        return self._answer(
            len(given),
            lambda i: _prompts.render(self._engine, given[i], form),
            sampling_params,
            use_tqdm,
        )

    def stream(
        self,
        prompt: Prompt | Conversation,
        sampling_params: SamplingParams | None = None,
    ) -> TextStream:
        """Answer one prompt or conversation step by step.

        Closing or dropping the stream cancels the request.
        """
        if _prompts.is_conversation(prompt):
            encoded = _prompts.render(self._engine, prompt)
        else:
            encoded = _prompts.encode(self._engine, prompt)
        (params,) = _prompts.params_for(1, sampling_params)
        if params.n > 1:
            raise check.wrong("n", params.n, "1 for a stream; use generate for several answers")
        return TextStream(self.submit(encoded, params))

    def get_tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return Tokenizer(self._engine)

    def get_metrics(self) -> EngineMetrics:
        """Where the engine's time went since it was loaded or the metrics were reset."""
        return self._metrics(reset=False)

    def reset_metrics(self) -> None:
        """Start the sums of `get_metrics` anew."""
        self._metrics(reset=True)

    @property
    def memory(self) -> MemoryReport:
        """What the parts take."""
        return self._memory

    def close(self) -> None:
        """End the engine and free its memory; open requests get `ClosedError`.

        A second call does nothing.
        """
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def engine(self) -> Engine:
        """The compiled engine; not an interface."""
        return self._engine

    def submit(
        self,
        prompt: Encoded,
        params: SamplingParams,
        ready: ReadyQueue | None = None,
        tag: int = 0,
    ) -> Answer:
        """Queue an encoded prompt, announced to `ready` by `tag`; not an interface."""
        speculative = self._speculation is not None
        return Answer(self._engine, prompt, params, speculative=speculative, ready=ready, tag=tag)

    def _answer(
        self,
        count: int,
        prompt: Callable[[int], Encoded],
        sampling_params: object,
        use_tqdm: bool,
    ) -> list[RequestOutput]:
        each = _prompts.params_for(count, sampling_params)
        answers: list[Answer] = []
        outputs: list[RequestOutput] = []
        try:
            with _counted(count, use_tqdm) as bar:
                for i, params in enumerate(each):
                    with _numbered(i, count):
                        encoded = prompt(i)
                        answers.append(self._submit_behind(answers, encoded, params))
                for i, answer in enumerate(answers):
                    with _numbered(i, count):
                        outputs.append(answer.wait())
                    bar(1)
        except BaseException:
            for answer in answers:
                answer.cancel()
            raise
        return outputs

    def _submit_behind(
        self, before: list[Answer], prompt: Encoded, params: SamplingParams
    ) -> Answer:
        """Submit as soon as the queue has room that the answers `before` do not take."""
        waiting = (answer for answer in before if answer.output is None)
        while True:
            try:
                return self.submit(prompt, params)
            except QueueFullError:
                oldest = next(waiting, None)
                if oldest is None:
                    raise
                oldest.wait()

    def _metrics(self, *, reset: bool) -> EngineMetrics:
        return EngineMetrics(**self._engine.metrics(reset))


class TextStream(Iterator[StreamChunk]):
    """The chunks of one answer, one for each step; the last one has `finish_reason` and `output`.

    Closing (also by `with`, or by dropping it) cancels the request; an iteration that waits in
    another thread then ends. Several threads may share a stream: they take turns. A signal handler
    that asks for a chunk while the code that it interrupted waits for one gets `ReentryError`.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        # One step at a time; `close` does not take it, so it can end a step that waits. A signal
        # handler runs in the thread whose turn it may be already, and must not wait for itself.
        self._turn = threading.RLock()
        self._at_work = False
        self._ended = False

    def __next__(self) -> StreamChunk:
        with self._turn:
            if self._at_work:
                raise ReentryError(
                    "this stream's next chunk is being waited for by the code that was "
                    "interrupted; leave the handler, or use another stream"
                )
            self._at_work = True
            try:
                return self._step()
            finally:
                self._at_work = False

    def _step(self) -> StreamChunk:
        if self._ended:
            raise StopIteration
        try:
            chunk = self._answer.step()
        except RequestAborted:
            self._ended = True
            raise StopIteration from None
        except BaseException:
            self.close()
            raise
        if chunk.output is not None:
            self._ended = True
        return chunk

    def close(self) -> None:
        """Cancel the request, if it has not ended; nothing follows."""
        self._ended = True
        self._answer.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _arguments(of: type) -> list[str]:
    import inspect  # noqa: PLC0415 - only for the words of an error

    return [name for name in inspect.signature(of).parameters if name != "unknown"]


def _refuse(name: str, value: object, default: object, hint: str) -> None:
    # An array compares item by item, so the type is looked at first.
    if not isinstance(value, type(default)) or value != default:
        raise NotSupportedYetError(name, value, f"leave it at {default!r}: {hint}")


def _count(name: str, value: int | None, low: int) -> int | None:
    return None if value is None else check.integer(name, value, low, check.U32_MAX)


@contextmanager
def _numbered(index: int, count: int) -> Iterator[None]:
    """Let an error tell which of several prompts it is about."""
    try:
        yield
    except SpecdecError as error:
        if count > 1:
            error.add_note(f"this was prompt {index} of 0..{count - 1}")
        raise


@contextmanager
def _counted(count: int, use_tqdm: bool) -> Iterator[Callable[[int], object]]:
    """Count answers on a terminal."""
    if not check.flag("use_tqdm", use_tqdm):
        yield lambda _: None
        return
    from tqdm.auto import tqdm  # type: ignore[import-untyped]  # noqa: PLC0415 - slow

    # None: only where stderr is a terminal. A notebook's output is none, but shows bars.
    disable = False if "ipykernel" in sys.modules else None
    with tqdm(total=count, desc="prompts", unit="prompt", disable=disable) as bar:
        yield bar.update
