"""From loading to the end: closing, dropping, leaving things open, and what is left of it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

import specdec_rs as sd
from tests.scripts import run

LONG = sd.SamplingParams(temperature=0, max_tokens=4000, ignore_eos=True)
SHORT = sd.SamplingParams(temperature=0, max_tokens=12)
PROMPT = "Once upon a time there was a lighthouse"


def test_close_can_be_called_again_and_later_calls_say_so(tiny: Path) -> None:
    llm = sd.LLM(tiny)
    tokenizer = llm.get_tokenizer()
    llm.close()
    llm.close()
    calls: list[Callable[[], object]] = [
        lambda: llm.generate(PROMPT, use_tqdm=False),
        lambda: llm.chat([{"role": "user", "content": PROMPT}], use_tqdm=False),
        lambda: llm.stream(PROMPT),
        lambda: tokenizer.encode(PROMPT),
        llm.get_metrics,
        llm.reset_metrics,
    ]
    for call in calls:
        with pytest.raises(sd.ClosedError, match="load the model again"):
            call()


def test_close_ends_a_stream(smollm2: Path) -> None:
    with sd.LLM(smollm2) as llm:
        stream = llm.stream(PROMPT, LONG)
        next(stream)
    with pytest.raises(sd.ClosedError):
        list(stream)
    assert list(stream) == []


def test_a_dropped_stream_gives_its_place_back(smollm2: Path) -> None:
    with sd.LLM(smollm2, max_num_seqs=1) as llm:
        for _ in range(3):
            stream = llm.stream(PROMPT, LONG)
            next(stream)
            del stream
        with llm.stream(PROMPT, LONG) as stream:
            next(stream)
        llm.stream(PROMPT, LONG)  # never begun
        # Only if all of them are gone does this one run before they would have ended.
        llm.generate(PROMPT, SHORT, use_tqdm=False)
        assert llm.get_metrics().num_steps < 1000


def test_an_error_cancels_the_other_requests_of_its_call(smollm2: Path) -> None:
    with sd.LLM(smollm2, max_num_seqs=1) as llm:
        with pytest.raises(sd.ContextLengthError) as refusal:
            llm.generate([PROMPT, PROMPT, ""], LONG, use_tqdm=False)
        assert refusal.value.__notes__ == ["this was prompt 2 of 0..2"]
        llm.generate(PROMPT, SHORT, use_tqdm=False)
        assert llm.get_metrics().num_steps < 1000


def test_a_stream_keeps_its_engine(tiny: Path) -> None:
    stream = sd.LLM(tiny).stream(PROMPT, SHORT)
    gc.collect()
    assert len(list(stream)) >= 1


def test_an_llm_goes_when_it_is_dropped(tiny: Path) -> None:
    llm = sd.LLM(tiny)
    seen = weakref.ref(llm)
    del llm
    assert seen() is None


LEFT_OPEN = """
import sys, threading
import specdec_rs as sd
llm = sd.LLM(sys.argv[1])
long = sd.SamplingParams(temperature=0, max_tokens=4000, ignore_eos=True)
begun = threading.Event()
def consume():
    for chunk in llm.stream("a", long):
        begun.set()
threading.Thread(target=consume, daemon=True).start()
begun.wait()
stream = llm.stream("b", long)
next(stream)
"""


@pytest.mark.parametrize("attempt", range(3))
def test_the_interpreter_ends_with_live_streams(smollm2: Path, attempt: int) -> None:
    done = run(LEFT_OPEN, smollm2)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Memory and threads of a process that opens and closes a model again and again. One arena and some
# rounds that do not count keep the allocator's own habits out: then 50 models leave some 200 KiB,
# and a leaked one would be 400 (and its caches and buffers as much again).
CYCLES = """
import gc, os, sys
import specdec_rs as sd

def rss():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def threads():
    return len(os.listdir("/proc/self/task"))

def cycle():
    llm = sd.LLM(sys.argv[1])
    llm.generate(["abc", "de"], sd.SamplingParams(max_tokens=4, seed=1), use_tqdm=False)
    next(llm.stream("abc"))
    END

before = threads()
for _ in range(50):
    cycle()
first = rss()
for _ in range(50):
    cycle()
while threads() > before:  # a dropped engine ends on a thread of its own
    pass
gc.collect()
print((rss() - first) // 1024)
"""


@pytest.mark.parametrize("end", ["llm.close()", "del llm"])
def test_nothing_is_left_of_a_model(tiny: Path, end: str) -> None:
    done = run(CYCLES.replace("END", end), tiny, MALLOC_ARENA_MAX="1")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50 * 400 / 4, "KiB"
