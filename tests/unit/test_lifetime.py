"""Threads, signals, forks and ends: whatever happens around a call, the engine stays in order."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import specdec_rs as sd

LONG = sd.SamplingParams(temperature=0, max_tokens=4000, ignore_eos=True)
SHORT = sd.SamplingParams(temperature=0, max_tokens=12)
PROMPT = "Once upon a time there was a lighthouse"


def test_close_can_be_called_again_and_later_calls_say_so(smollm2: Path) -> None:
    llm = sd.LLM(smollm2)
    llm.close()
    llm.close()
    for call in (
        lambda: llm.generate(PROMPT, use_tqdm=False),
        lambda: llm.stream(PROMPT),
        llm.get_metrics,
        llm.reset_metrics,
    ):
        with pytest.raises(sd.ClosedError, match="load the model again"):
            call()


def test_close_ends_a_stream(smollm2: Path) -> None:
    llm = sd.LLM(smollm2)
    stream = llm.stream(PROMPT, LONG)
    next(stream)
    llm.close()
    with pytest.raises(sd.ClosedError):
        list(stream)


def test_a_dropped_stream_gives_its_place_back(smollm2: Path) -> None:
    with sd.LLM(smollm2, max_num_seqs=1) as llm:
        for _ in range(3):
            stream = llm.stream(PROMPT, LONG)
            next(stream)
            del stream
        llm.stream(PROMPT, LONG)  # never begun
        # Only if all of them are gone does this one run before they would have ended.
        llm.generate(PROMPT, SHORT, use_tqdm=False)
        assert llm.get_metrics().num_steps < 1000


def test_a_stream_keeps_its_engine(smollm2: Path) -> None:
    stream = sd.LLM(smollm2).stream(PROMPT, SHORT)
    gc.collect()
    assert len(list(stream)) > 1


def test_an_llm_goes_when_it_is_dropped(smollm2: Path) -> None:
    llm = sd.LLM(smollm2)
    seen = weakref.ref(llm)
    del llm
    gc.collect()
    assert seen() is None


def test_many_threads_get_what_one_gets(llm: sd.LLM) -> None:
    prompts = [f"{PROMPT} number {n}" for n in range(16)]
    serial = [llm.generate(p, SHORT, use_tqdm=False)[0].outputs for p in prompts]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda p: llm.generate(p, SHORT, use_tqdm=False), prompts))
    assert [outputs[0].outputs for outputs in together] == serial


def test_other_threads_run_meanwhile(llm: sd.LLM) -> None:
    done = threading.Event()
    turns = 0

    def work() -> None:
        llm.generate(PROMPT, sd.SamplingParams(max_tokens=64), use_tqdm=False)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        turns += 1
    thread.join()
    # A call that kept the GIL would leave this thread next to none.
    assert turns > 10_000


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


INTERRUPTED = """
import os, signal, sys, threading
import specdec_rs as sd
llm = sd.LLM(sys.argv[1], max_num_seqs=1)
long = sd.SamplingParams(temperature=0, max_tokens=4000, ignore_eos=True)
def interrupt_when_running():
    while llm.get_metrics().num_steps == 0:
        pass
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt_when_running).start()
try:
    ACTION
    print("not interrupted")
except KeyboardInterrupt as error:
    kept = error  # its traceback holds the frames of the call
    print("interrupted", llm.get_metrics().num_steps < int(sys.argv[2]))
short = sd.SamplingParams(temperature=0, max_tokens=8)
print(len(llm.generate("1 2 3", short, use_tqdm=False)[0].outputs[0].token_ids))
print(llm.get_metrics().num_steps < 2000)
"""


@pytest.mark.parametrize(
    ("action", "steps"),
    [
        ("llm.generate(['a', 'b'], long, use_tqdm=False)", 2000),
        ("list(llm.stream('a', long))", 2000),
        # Reading this prompt takes some 60 steps, and nothing comes from the engine meanwhile.
        ("list(llm.stream('a ' * 7500, long))", 40),
    ],
    ids=["generate", "stream", "prompt"],
)
def test_ctrl_c_cancels_the_call_and_leaves_the_engine(
    smollm2: Path, action: str, steps: int
) -> None:
    done = run(INTERRUPTED.replace("ACTION", action), str(smollm2), str(steps))
    assert done.stdout.split() == ["interrupted", "True", "8", "True"], done.stderr


FORKED = """
import os, sys
import specdec_rs as sd
llm = sd.LLM(sys.argv[1])
stream = llm.stream("a", sd.SamplingParams(max_tokens=500, ignore_eos=True))
next(stream)
calls = {
    "generate": lambda: llm.generate("a", use_tqdm=False),
    "stream": lambda: next(stream),
    "metrics": llm.get_metrics,
}
child = os.fork()
if child == 0:
    for name, call in calls.items():
        try:
            call()
        except sd.ForkError as error:
            print(name, "spawn" in str(error), flush=True)
    llm.close()
    sys.exit(0)  # with everything that the end of an interpreter does
print("child", os.waitpid(child, 0)[1])
print("parent", len(list(stream)) > 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_told_and_the_parent_goes_on(smollm2: Path) -> None:
    done = run(FORKED, str(smollm2))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "generate True",
        "stream True",
        "metrics True",
        "child 0",
        "parent True",
    ]


LEFT_OPEN = """
import sys, threading
import specdec_rs as sd
llm = sd.LLM(sys.argv[1])
long = sd.SamplingParams(temperature=0, max_tokens=4000, ignore_eos=True)
begun = threading.Event()
def consume():
    try:
        for chunk in llm.stream("a", long):
            begun.set()
    except sd.ClosedError:
        pass
threading.Thread(target=consume, daemon=True).start()
begun.wait()
stream = llm.stream("b", long)
next(stream)
"""


@pytest.mark.parametrize("run_number", range(3))
def test_the_interpreter_ends_with_live_streams(smollm2: Path, run_number: int) -> None:
    done = run(LEFT_OPEN, str(smollm2))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
