"""Calls from a signal handler into what the interrupted code waits in: answered or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts import run

# The signal comes from another thread once the engine is at work; the handler runs in the thread
# that waits.
AT_WORK = """
signal.signal(signal.SIGUSR1, handle)

def interrupt_at_work():
    while llm.get_metrics().num_steps == 0:
        pass
    os.kill(os.getpid(), signal.SIGUSR1)

threading.Thread(target=interrupt_at_work).start()
"""
INTERRUPTED = (
    """
import os, signal, sys, threading
import specdec_rs as sd

llm = sd.LLM(sys.argv[1])
long = sd.SamplingParams(temperature=0, max_tokens=2000, ignore_eos=True)
short = sd.SamplingParams(temperature=0, max_tokens=5, ignore_eos=True)
prompt = "a " * 3000  # takes many steps to read, and nothing comes meanwhile
stream = llm.stream(prompt, short)

def handle(*_):
    try:
        print("handler", HANDLER)
    except Exception as error:
        print("handler", type(error).__name__, isinstance(error, ValueError))
"""
    + AT_WORK
    + """try:
    print("outer", OUTER)
except Exception as error:
    print("outer", type(error).__name__)
"""
)
COUNT = "sum(len(chunk.token_ids) for chunk in stream)"
ASK = "len(llm.generate('b', short, use_tqdm=False)[0].outputs[0].token_ids)"
LONG_ASK = "len(llm.generate(prompt, short, use_tqdm=False)[0].outputs[0].token_ids)"


@pytest.mark.parametrize(
    ("outer", "handler", "said"),
    [
        (COUNT, "next(stream)", ["handler ReentryError True", "outer 5"]),
        (COUNT, ASK, ["handler 5", "outer 5"]),
        (COUNT, "next(llm.stream('b', short)).token_ids != []", ["handler True", "outer 5"]),
        (COUNT, "stream.close()", ["handler None", "outer 0"]),
        (COUNT, "llm.close()", ["handler None", "outer ClosedError"]),
        (LONG_ASK, LONG_ASK, ["handler 5", "outer 5"]),
        (LONG_ASK, "llm.close()", ["handler None", "outer ClosedError"]),
    ],
)
def test_a_handler_s_call_never_hangs(
    smollm2: Path, outer: str, handler: str, said: list[str]
) -> None:
    done = run(INTERRUPTED.replace("OUTER", outer).replace("HANDLER", handler), smollm2)
    assert done.stdout.splitlines() == said, done.stderr


FULL = (
    """
import os, signal, sys, threading
import specdec_rs as sd

llm = sd.LLM(sys.argv[1], max_num_seqs=1, max_queued_requests=0)
short = sd.SamplingParams(temperature=0, max_tokens=5, ignore_eos=True)

def handle(*_):
    try:
        llm.generate("b", short, use_tqdm=False)
    except sd.QueueFullError as error:
        print(type(error).__name__)
"""
    + AT_WORK
    + """print(len(llm.generate(["a " * 3000, "b"], short, use_tqdm=False)))
"""
)


def test_a_handler_is_told_that_the_queue_is_full(smollm2: Path) -> None:
    assert run(FULL, smollm2).stdout.split() == ["QueueFullError", "2"]
