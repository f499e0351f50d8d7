"""AsyncLLM with many open requests: no thread for each, nobody starved, every end heard of."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import specdec_rs as sd
from specdec_rs._ready import Waiter
from specdec_rs.async_llm import _MOST_READING
from tests.scripts import run

SHORT = sd.SamplingParams(temperature=0, max_tokens=20, ignore_eos=True)
LONG = sd.SamplingParams(temperature=0, max_tokens=4000, ignore_eos=True)
# More than any pool of threads would be given.
MANY = 1500
STEPS = 60
SOME = sd.SamplingParams(temperature=0, max_tokens=STEPS, ignore_eos=True)


async def last(engine: sd.AsyncLLM, prompt: str, params: sd.SamplingParams) -> sd.RequestOutput:
    return [output async for output in engine.generate(prompt, params)][-1]


def test_many_open_requests_take_no_threads_and_starve_nobody(smollm2: Path) -> None:
    async def ask() -> None:
        async with sd.AsyncLLM(smollm2, max_num_seqs=1) as engine:
            runs = engine.generate("a", LONG)
            await anext(runs)
            waiting = [asyncio.create_task(last(engine, "b", LONG)) for _ in range(MANY)]
            while len(engine._open) <= MANY:
                await asyncio.sleep(0)
            assert threading.active_count() < 20
            # One that runs is heard although the others wait, and so are questions.
            for _ in range(3):
                assert not (await anext(runs)).finished
            await engine.check_health()
            assert (await engine.get_metrics()).num_steps < 4000
            assert not any(task.done() for task in waiting)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await runs.aclose()
            assert (await last(engine, "c", SHORT)).finished

    asyncio.run(ask())


def test_event_loops_share_an_engine_at_once_and_one_after_another(tiny: Path) -> None:
    engine = sd.AsyncLLM(tiny, max_num_seqs=3)

    async def ask() -> list[list[int]]:
        outputs = await asyncio.gather(*(last(engine, f"the {i} of", SHORT) for i in range(6)))
        return [output.outputs[0].token_ids for output in outputs]

    alone = asyncio.run(ask())
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(asyncio.run, ask()) for _ in range(4)]
        assert [future.result() for future in futures] == [alone] * 4
    engine.shutdown()


def test_an_iteration_goes_on_in_another_loop(tiny: Path) -> None:
    engine = sd.AsyncLLM(tiny)
    loops = [asyncio.new_event_loop() for _ in range(2)]
    outputs = engine.generate("a", SHORT)
    count = 0
    while True:
        loop = loops[count % 2]
        output = loop.run_until_complete(anext(outputs))
        count += 1
        if output.finished:
            break
    assert len(output.outputs[0].token_ids) == 20
    for loop in loops:
        loop.run_until_complete(outputs.aclose())
        loop.close()
    engine.shutdown()


def test_a_loop_wakes_only_its_own() -> None:
    """A call that was posted to a busy loop may come when its waiter is in another one."""

    async def wake(waiter: Waiter) -> None:
        waiter.wake()

    async def moved() -> None:
        waiter = Waiter()
        waits = asyncio.ensure_future(waiter.wait())
        await asyncio.sleep(0)
        # In debug mode a loop refuses what comes from another thread.
        asyncio.get_running_loop().set_debug(True)
        await asyncio.to_thread(asyncio.run, wake(waiter))
        await asyncio.sleep(0)
        assert not waits.done()
        waiter.wake()
        await waits

    asyncio.run(moved())


@pytest.mark.parametrize("begun", [False, True])
def test_shutdown_tells_all_that_wait(tiny: Path, begun: bool) -> None:
    async def ask() -> list[object]:
        engine = sd.AsyncLLM(tiny, max_num_seqs=1)
        runs = engine.generate("a", LONG)
        hold = threading.Event()
        if begun:
            await anext(runs)
        else:  # and no prompt is read before the shutdown
            for _ in range(_MOST_READING):
                engine._threads.submit(hold.wait)
        tasks = [asyncio.create_task(last(engine, "a", LONG)) for _ in range(200)]
        await asyncio.sleep(0)
        engine.shutdown()
        hold.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    kinds = {type(result) for result in asyncio.run(ask())}
    assert kinds <= ({sd.ClosedError, sd.RequestOutput} if begun else {sd.ClosedError})
    assert sd.ClosedError in kinds


def test_one_answer_for_what_is_taken_late(smollm2: Path) -> None:
    async def ask() -> None:
        async with sd.AsyncLLM(smollm2, speculative_config=None) as engine:
            outputs = engine.generate("a", SOME)
            first = await anext(outputs)
            # The engine goes on meanwhile; what its last step brings may come a moment later.
            while (await engine.get_metrics()).num_steps < STEPS:
                await asyncio.sleep(0)
            rest = [output async for output in outputs]
            assert len(first.outputs[0].token_ids) < len(rest[0].outputs[0].token_ids)
            assert len(rest) <= 2
            assert len(rest[-1].outputs[0].token_ids) == STEPS

    asyncio.run(ask())


def test_a_task_that_never_waits_lets_others_run(smollm2: Path) -> None:
    async def ask() -> list[str]:
        order = []
        async with sd.AsyncLLM(smollm2, speculative_config=None) as engine:

            async def other() -> None:
                order.append("other")

            outputs = engine.generate("a", SOME)
            await anext(outputs)
            while (await engine.get_metrics()).num_steps < STEPS:
                await asyncio.sleep(0)
            task = asyncio.create_task(other())
            async for _ in outputs:
                order.append("output")
            await task
        return order

    assert asyncio.run(ask())[0] == "other"


def test_an_abort_wakes_who_waits_behind_others(smollm2: Path) -> None:
    async def ask() -> None:
        async with sd.AsyncLLM(smollm2, max_num_seqs=1) as engine:
            runs = engine.generate("a", LONG, request_id="runs")
            await anext(runs)
            waits = asyncio.create_task(anext(engine.generate("b", LONG, request_id="waits")))
            while len(engine._open) < 2 or engine._open["waits"].answer is None:
                await asyncio.sleep(0)
            await engine.abort("waits")
            assert (await waits).outputs[0].finish_reason == "abort"
            await engine.abort("runs")
            *_, end = [output async for output in runs]
            assert end.outputs[0].finish_reason == "abort"
            assert (await engine.get_metrics()).num_steps < 4000

    asyncio.run(ask())


def test_a_cancelled_request_s_place_is_free_at_once(smollm2: Path) -> None:
    async def ask() -> None:
        async with sd.AsyncLLM(smollm2, max_num_seqs=1, max_queued_requests=0) as engine:
            for _ in range(5):
                outputs = engine.generate("a", LONG)
                await anext(outputs)
                await outputs.aclose()

    asyncio.run(ask())


def test_several_answers_are_one_request(tiny: Path) -> None:
    several = sd.SamplingParams(n=9, seed=1, max_tokens=5, ignore_eos=True)

    async def ask() -> None:
        async with sd.AsyncLLM(tiny, max_num_seqs=2, max_queued_requests=0) as engine:
            both = await asyncio.gather(*(last(engine, "a", several) for _ in range(2)))
            for output in both:
                assert [len(answer.token_ids) for answer in output.outputs] == [5] * 9

    asyncio.run(ask())


def test_a_dropped_engine_is_gone_and_so_is_its_thread(tiny: Path) -> None:
    engine = sd.AsyncLLM(tiny)
    asyncio.run(last(engine, "a", SHORT))
    thread = engine._pump._thread
    seen = weakref.ref(engine)
    del engine
    gc.collect()
    assert seen() is None
    thread.join(timeout=60)
    assert not thread.is_alive()


LEFT_OPEN = """
import asyncio, sys
import specdec_rs as sd
engine = sd.AsyncLLM(sys.argv[1], max_num_seqs=1)
long = sd.SamplingParams(temperature=0, max_tokens=4000, ignore_eos=True)
async def consume():
    async for _ in engine.generate("a", long):
        pass
loop = asyncio.new_event_loop()
tasks = [loop.create_task(consume()) for _ in range(100)]
async def begun():
    while len(engine._open) < 100:
        await asyncio.sleep(0)
loop.run_until_complete(begun())
END
"""


@pytest.mark.parametrize("end", ["", "loop.close()", "engine.shutdown()", "del engine, tasks"])
def test_the_interpreter_ends_with_tasks_that_wait(smollm2: Path, end: str) -> None:
    done = run(LEFT_OPEN.replace("END", end), smollm2)
    assert (done.returncode, done.stdout) == (0, "")
    # What asyncio says of such tasks, and nothing else, is said.
    assert "Fatal" not in done.stderr
    assert "specdec-ready" not in done.stderr


CLOSED_LOOP = """
import asyncio, sys
import specdec_rs as sd
engine = sd.AsyncLLM(sys.argv[1], max_num_seqs=1)
params = sd.SamplingParams(temperature=0, max_tokens=100, ignore_eos=True)
begun = asyncio.Event()
async def consume():
    async for output in engine.generate("a", params):
        begun.set()
    return output
loop = asyncio.new_event_loop()
tasks = [loop.create_task(consume()) for _ in range(50)]
loop.run_until_complete(begun.wait())
loop.close()
print(len(asyncio.run(consume()).outputs[0].token_ids))
"""


def test_a_loop_closed_with_open_requests_harms_no_other(tiny: Path) -> None:
    done = run(CLOSED_LOOP, tiny)
    assert (done.returncode, done.stdout) == (0, "100\n"), done.stderr


FORKED = """
import asyncio, os, sys, warnings
import specdec_rs as sd
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 and newer warn of any fork with threads
engine = sd.AsyncLLM(sys.argv[1])
params = sd.SamplingParams(max_tokens=5, ignore_eos=True)
async def answer():
    async for output in engine.generate("a", params):
        pass
    return len(output.outputs[0].token_ids)
async def one():
    return await anext(engine.generate("a", params))
calls = [one, answer, engine.check_health, engine.get_metrics]
print(asyncio.run(answer()), flush=True)
child = os.fork()
if child == 0:
    for call in calls:
        try:
            asyncio.run(call())
            print("answered", flush=True)
        except sd.ForkError:
            print("ForkError", flush=True)
    engine.shutdown()
    sys.exit(0)  # with everything that the end of an interpreter does
print(os.waitpid(child, 0)[1], asyncio.run(answer()))
"""


def test_a_forked_child_hears_of_it_and_the_parent_goes_on(tiny: Path) -> None:
    done = run(FORKED, tiny)
    assert done.stdout.splitlines() == ["5", *["ForkError"] * 4, "0 5"], done.stderr
