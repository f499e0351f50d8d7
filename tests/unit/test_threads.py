"""Threads: many share one engine, none is kept waiting by another's call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import specdec_rs as sd

PROMPT = "Count: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5,"
SHORT = sd.SamplingParams(temperature=0, max_tokens=16)
LONG = sd.SamplingParams(temperature=0, max_tokens=4000, ignore_eos=True)


def test_many_threads_get_what_one_gets(llm: sd.LLM) -> None:
    prompts = [f"{PROMPT} number {n}" for n in range(8)]
    serial = [llm.generate(p, SHORT, use_tqdm=False)[0].outputs for p in prompts]
    start = threading.Barrier(8)

    def work(prompt: str) -> list[list[sd.CompletionOutput]]:
        start.wait()
        whole = [llm.generate(prompt, SHORT, use_tqdm=False)[0].outputs for _ in range(2)]
        last = [chunk.output for chunk in llm.stream(prompt, SHORT)][-1]
        assert last is not None
        return [*whole, last.outputs]

    with ThreadPoolExecutor(8) as pool:
        for alone, together in zip(serial, pool.map(work, prompts), strict=True):
            assert together == [alone] * 3


def longest_gap(work: Callable[[], object]) -> float:
    """Longest time that this thread stands still while another one works, as a share of it all.

    A call that keeps the GIL makes it 1. Where the GIL is free, gaps are time slices of the system.
    """
    gap = 0.0
    with ThreadPoolExecutor(1) as pool:
        start = last = time.perf_counter()
        working = pool.submit(work)
        while not working.done():
            now = time.perf_counter()
            gap, last = max(gap, now - last), now
        working.result()
        now = time.perf_counter()
    return max(gap, now - last) / (now - start)


def test_other_threads_run_while_a_call_waits(llm: sd.LLM) -> None:
    # Nothing comes from the engine, and so nothing returns to Python, before the prompt is read.
    one = sd.SamplingParams(max_tokens=1)
    assert longest_gap(lambda: llm.generate("a " * 600, one, use_tqdm=False)) < 0.5


def test_closing_a_stream_ends_the_thread_that_waits_for_it(llm: sd.LLM) -> None:
    stream = llm.stream("a " * 4000, LONG)
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(list, stream)
        stream.close()
        rest.result(timeout=60)
    assert list(stream) == []


def test_a_stream_can_be_read_by_several_threads(llm: sd.LLM) -> None:
    stream = llm.stream(PROMPT, SHORT)
    with ThreadPoolExecutor(4) as pool:
        parts = [pool.submit(list, stream) for _ in range(4)]
        tokens = [t for part in parts for chunk in part.result() for t in chunk.token_ids]
    (whole,) = llm.generate(PROMPT, SHORT, use_tqdm=False)
    assert sorted(tokens) == sorted(whole.outputs[0].token_ids)


@pytest.mark.parametrize("calls", range(3))
def test_closing_while_threads_call(tiny: Path, calls: int) -> None:
    llm = sd.LLM(tiny)
    start = threading.Barrier(5)

    def work() -> str:
        start.wait()
        try:
            while True:
                llm.generate("abc", SHORT, use_tqdm=False)
        except sd.ClosedError:
            return "closed"

    with ThreadPoolExecutor(4) as pool:
        ends = [pool.submit(work) for _ in range(4)]
        start.wait()
        llm.close()
        assert [end.result(timeout=60) for end in ends] == ["closed"] * 4
