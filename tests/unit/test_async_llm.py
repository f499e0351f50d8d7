"""AsyncLLM: many tasks, one engine; abort, cancellation, a full queue, the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import specdec_rs as sd

LONG = sd.SamplingParams(temperature=0, max_tokens=4000, ignore_eos=True)
SHORT = sd.SamplingParams(temperature=0, max_tokens=20, ignore_eos=True)


@pytest.fixture
def engine(tiny: Path) -> Iterator[sd.AsyncLLM]:
    loaded = sd.AsyncLLM(tiny, max_num_seqs=2, max_queued_requests=6)
    yield loaded
    loaded.shutdown()


async def last(outputs: AsyncIterator[sd.RequestOutput]) -> sd.RequestOutput:
    found = [output async for output in outputs]
    assert [output.finished for output in found] == [False] * (len(found) - 1) + [True]
    texts = [output.outputs[0].text for output in found]
    assert all(b.startswith(a) for a, b in pairwise(texts))
    return found[-1]


def test_many_tasks_get_the_answers_of_the_llm(engine: sd.AsyncLLM, tiny: Path) -> None:
    prompts = [f"the {i} of" for i in range(8)]

    async def ask() -> list[sd.RequestOutput]:
        return await asyncio.gather(*(last(engine.generate(p, SHORT)) for p in prompts))

    with sd.LLM(tiny, speculative_config=None) as llm:
        expected = llm.generate(prompts, SHORT, use_tqdm=False)
    assert [o.outputs for o in asyncio.run(ask())] == [o.outputs for o in expected]


def test_chat_and_several_answers(engine: sd.AsyncLLM) -> None:
    params = sd.SamplingParams(seed=3, n=2, max_tokens=10, ignore_eos=True)

    async def ask() -> sd.RequestOutput:
        return await last(engine.chat([{"role": "user", "content": "a"}], params))

    output = asyncio.run(ask())
    assert [answer.index for answer in output.outputs] == [0, 1]
    assert all(len(answer.token_ids) == 10 for answer in output.outputs)


def test_an_abort_ends_one_request_and_no_other(engine: sd.AsyncLLM) -> None:
    async def aborted() -> sd.RequestOutput:
        async for output in engine.generate("a", LONG, request_id="mine"):
            if not output.finished:
                await engine.abort("mine")
        return output

    async def ask() -> tuple[sd.RequestOutput, sd.RequestOutput]:
        return await asyncio.gather(aborted(), last(engine.generate("b", SHORT)))

    mine, other = asyncio.run(ask())
    assert (mine.request_id, mine.finished) == ("mine", True)
    assert mine.outputs[0].finish_reason == "abort"
    assert 0 < len(mine.outputs[0].token_ids) < 4000
    assert other.outputs[0].finish_reason == "length"


def test_a_request_id_names_one_open_request(engine: sd.AsyncLLM) -> None:
    async def ask() -> None:
        first = engine.generate("a", LONG, request_id="x")
        await anext(first)
        with pytest.raises(sd.ConfigError, match=r"^request_id: found 'x'"):
            await anext(engine.generate("b", SHORT, request_id="x"))
        await first.aclose()
        assert (await last(engine.generate("b", SHORT, request_id="x"))).request_id == "x"

    asyncio.run(ask())


def test_two_requests_at_once_cannot_share_an_id(engine: sd.AsyncLLM) -> None:
    async def ask() -> list[object]:
        both = (last(engine.generate(p, SHORT, request_id="x")) for p in "ab")
        return await asyncio.gather(*both, return_exceptions=True)

    first, second = asyncio.run(ask())
    assert isinstance(first, sd.RequestOutput)
    assert isinstance(second, sd.ConfigError)
    assert "which is open" in str(second)


def test_every_end_frees_the_id(engine: sd.AsyncLLM) -> None:
    async def ask() -> None:
        with pytest.raises(sd.ConfigError):
            await anext(engine.generate({}, SHORT, request_id="x"))  # type: ignore[arg-type]
        with pytest.raises(sd.ContextLengthError):
            await anext(engine.generate({"prompt_token_ids": []}, SHORT, request_id="x"))
        cancelled = asyncio.create_task(last(engine.generate("a", LONG, request_id="x")))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        async for output in engine.generate("a", SHORT, request_id="x"):
            if output.finished:  # its iteration has not ended, but the request has
                await last(engine.generate("b", SHORT, request_id="x"))

    asyncio.run(ask())


def test_an_abort_takes_one_name_or_several(engine: sd.AsyncLLM) -> None:
    async def ask() -> list[str | None]:
        runs = [engine.generate("a", LONG, request_id=name) for name in "xy"]
        for run in runs:
            await anext(run)
        await engine.abort(["x", "y", "z"])
        return [(await last(run)).outputs[0].finish_reason for run in runs]

    assert asyncio.run(ask()) == ["abort", "abort"]
    wrongs: list[Any] = [[[]], 5, None]
    for wrong in wrongs:
        with pytest.raises(sd.ConfigError, match="request_id"):
            asyncio.run(engine.abort(wrong))


def test_an_abort_counts_before_the_engine_has_the_request(engine: sd.AsyncLLM) -> None:
    async def ask() -> sd.RequestOutput:
        task = asyncio.create_task(last(engine.generate("a", LONG, request_id="x")))
        await asyncio.sleep(0)
        await engine.abort("x")
        return await task

    (answer,) = asyncio.run(ask()).outputs
    assert answer.finish_reason == "abort"
    assert answer.token_ids == []


def test_a_chosen_id_is_never_given_to_another_request(engine: sd.AsyncLLM) -> None:
    async def ask() -> None:
        probe = await last(engine.generate("a", SHORT))
        # The engine's next numbers: one of them is the unnamed request's.
        names = [str(int(probe.request_id) + i) for i in (1, 2, 3)]
        named = [engine.generate("a", LONG, request_id=name) for name in names[1:]]
        outputs = [await anext(each) for each in named]
        unnamed = engine.generate("a", LONG)
        outputs.append(await anext(unnamed))
        assert len({output.request_id for output in outputs}) == 3
        for each in (*named, unnamed):
            await each.aclose()

    asyncio.run(ask())


def test_a_cancelled_task_frees_its_place(engine: sd.AsyncLLM) -> None:
    async def ask() -> None:
        tasks = [asyncio.create_task(last(engine.generate("a", LONG))) for _ in range(8)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while True:
            try:
                await last(engine.generate("b", SHORT))
            except sd.QueueFullError:
                continue
            return

    asyncio.run(ask())


def test_a_full_queue_is_a_typed_error(engine: sd.AsyncLLM) -> None:
    async def ask() -> list[object]:
        tasks = [last(engine.generate("a", LONG)) for _ in range(40)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(ask())
    refused = [result for result in results if isinstance(result, BaseException)]
    assert refused
    assert all(isinstance(result, sd.QueueFullError) for result in refused)
    assert "max_queued_requests" in str(refused[0])
    assert len(refused) < 40


def test_generate_waits_where_its_own_prompts_fill_the_queue(tiny: Path) -> None:
    prompts = [f"the {i} of" for i in range(9)]
    with sd.LLM(tiny, max_num_seqs=1, max_queued_requests=1) as narrow:
        few = narrow.generate(prompts, SHORT, use_tqdm=False)
    with sd.LLM(tiny) as wide:
        many = wide.generate(prompts, SHORT, use_tqdm=False)
    assert [o.outputs for o in few] == [o.outputs for o in many]


def test_after_shutdown(engine: sd.AsyncLLM) -> None:
    async def ask() -> None:
        await engine.check_health()
        engine.shutdown()
        engine.shutdown()
        with pytest.raises(sd.ClosedError):
            await engine.check_health()
        with pytest.raises(sd.ClosedError):
            await anext(engine.generate("a", SHORT))

    asyncio.run(ask())


@pytest.mark.parametrize("fault", [None, KeyError("mine")])
def test_async_with_shuts_down(tiny: Path, fault: KeyError | None) -> None:
    async def ask() -> sd.AsyncLLM:
        engine = sd.AsyncLLM(tiny)
        with pytest.raises(KeyError, match="mine") if fault else nullcontext():
            async with engine as entered:
                assert entered is engine
                assert (await last(entered.generate("a", SHORT))).finished
                if fault:
                    raise fault
        with pytest.raises(sd.ClosedError):
            await engine.check_health()
        return engine

    asyncio.run(ask()).shutdown()


def test_async_with_ends_open_requests(tiny: Path) -> None:
    async def ask() -> None:
        async with sd.AsyncLLM(tiny, max_num_seqs=1) as engine:
            outputs = engine.generate("a", replace(LONG, temperature=1, n=50))
            await anext(outputs)
        with pytest.raises(sd.ClosedError):
            await last(outputs)

    asyncio.run(ask())
