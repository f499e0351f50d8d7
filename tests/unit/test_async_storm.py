"""AsyncLLM under random schedules: whoever goes, however, leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path

import pytest

import specdec_rs as sd
from specdec_rs.async_llm import _MOST_READING

SEQS, QUEUED = 3, 40
TASKS = 60
ENDS = ("end", "abort", "cancel", "aclose", "timeout", "abort early")
WHOLE = {"length", "stop"}


class Storm:
    """Tasks that end in a way drawn by lot, on one engine."""

    def __init__(self, engine: sd.AsyncLLM, seed: int) -> None:
        self.engine = engine
        self.lots = random.Random(seed)

    async def one(self, number: int) -> str:
        """A request, and how it ended."""
        way, after = self.lots.choice(ENDS), self.lots.randrange(6)
        for _ in range(self.lots.randrange(40)):
            await asyncio.sleep(0)
        try:
            if way == "timeout":
                async with asyncio.timeout(self.lots.random() * 0.01):
                    return await self.read(number, way, after)
            task = asyncio.create_task(self.read(number, way, after))
            if way in {"cancel", "abort early"}:
                for _ in range(self.lots.randrange(60)):
                    await asyncio.sleep(0)
                if way == "cancel":
                    task.cancel()
                else:
                    await self.engine.abort(f"{number}")
            return await task
        except (sd.SpecdecError, TimeoutError, asyncio.CancelledError) as error:
            return type(error).__name__

    async def read(self, number: int, way: str, after: int) -> str:
        params = sd.SamplingParams(
            n=self.lots.choice((1, 1, 3)),
            seed=number,
            max_tokens=1 + self.lots.randrange(40),
            ignore_eos=True,
        )
        outputs = self.engine.generate("a", params, request_id=f"{number}")
        said = [""] * params.n
        count = 0
        async for output in outputs:
            for i, answer in enumerate(output.outputs):
                assert answer.text.startswith(said[i])
                said[i] = answer.text
            if count == after and way == "abort":
                await self.engine.abort(f"{number}")
            if count == after and way == "aclose":
                await outputs.aclose()
                return "closed"
            count += 1
        assert output.finished
        reasons = {answer.finish_reason for answer in output.outputs}
        assert reasons <= {*WHOLE, "abort"}
        return "abort" if "abort" in reasons else "end"


async def quiet(engine: sd.AsyncLLM) -> None:
    """Nothing is left: no name, no waiter, no place that is taken."""
    assert engine._open == {}
    assert engine._pump._waiters == {}
    # A cancelled task does not wait for the thread that reads its prompt.
    readers = threading.Barrier(_MOST_READING)
    await asyncio.gather(*(engine._in_thread(readers.wait) for _ in range(_MOST_READING)))
    one = sd.SamplingParams(max_tokens=1, ignore_eos=True)
    open_ = [engine.generate("a", one) for _ in range(SEQS + QUEUED)]
    outputs = await asyncio.gather(*map(anext, open_))
    assert all(len(output.outputs[0].token_ids) == 1 for output in outputs)
    for each in open_:
        await each.aclose()


async def storm(model: Path, seed: int) -> set[str]:
    engine = sd.AsyncLLM(model, max_num_seqs=SEQS, max_queued_requests=QUEUED)
    run = Storm(engine, seed)
    tasks = [asyncio.create_task(run.one(number)) for number in range(TASKS)]
    ends_early = seed % 4 == 3
    if ends_early:
        for _ in range(run.lots.randrange(400)):
            await asyncio.sleep(0)
        engine.shutdown()
    ends = set(await asyncio.gather(*tasks))
    if not ends_early:
        await quiet(engine)
        engine.shutdown()
    assert engine._open == {}
    engine._pump._thread.join(timeout=60)
    assert not engine._pump._thread.is_alive()
    return ends


@pytest.mark.parametrize("seed", range(8))
def test_random_schedules_leave_nothing_behind(tiny: Path, seed: int) -> None:
    ends = asyncio.run(storm(tiny, seed))
    allowed = {"end", "abort", "closed", "CancelledError", "TimeoutError", "QueueFullError"}
    assert ends <= allowed | ({"ClosedError"} if seed % 4 == 3 else set())
