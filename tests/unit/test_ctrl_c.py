"""Ctrl-C ends the call within moments, cancels its requests and leaves the engine usable."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts import run

# The signal comes from another thread once the engine is at work. How soon the call ends is told
# in seconds; how much the engine did meanwhile, in steps.
INTERRUPTED = """
import os, signal, sys, threading, time
import specdec_rs as sd

llm = sd.LLM(sys.argv[1], max_num_seqs=1)
long = sd.SamplingParams(temperature=0, max_tokens=4000, ignore_eos=True)
sent = []

def interrupt_at_work():
    while llm.get_metrics().num_steps == 0:
        pass
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt_at_work).start()
try:
    ACTION
    print("not interrupted")
except KeyboardInterrupt as error:
    after = time.perf_counter() - sent[0]
    steps = llm.get_metrics().num_steps
    kept = error  # its traceback holds the call's frames, and with them the requests
    print("interrupted", after, steps)
short = sd.SamplingParams(temperature=0, max_tokens=8)
print(len(llm.generate("1 2 3", short, use_tqdm=False)[0].outputs[0].token_ids))
print(llm.get_metrics().num_steps)
"""

# Many times the 50 ms after which a waiting call looks for signals: the machine may be busy. A call
# that does not look takes all its thousands of steps.
SOON = 5.0


@pytest.mark.parametrize(
    ("action", "most_steps"),
    [
        ("llm.generate(['a', 'b'], long, use_tqdm=False)", 2000),
        ("llm.chat([{'role': 'user', 'content': 'a'}], long, use_tqdm=False)", 2000),
        ("list(llm.stream('a', long))", 2000),
        # Reading this prompt takes some 60 steps, and nothing comes from the engine meanwhile.
        ("list(llm.stream('a ' * 7500, long))", 40),
    ],
    ids=["generate", "chat", "stream", "prompt"],
)
def test_a_call_is_interrupted(smollm2: Path, action: str, most_steps: int) -> None:
    done = run(INTERRUPTED.replace("ACTION", action), smollm2)
    assert done.returncode == 0, done.stderr
    interrupted, tokens, all_steps = done.stdout.splitlines()
    word, seconds, steps = interrupted.split()
    assert word == "interrupted"
    assert float(seconds) < SOON
    assert int(steps) < most_steps
    # The next call found its only place free: the interrupted requests were gone.
    assert tokens == "8"
    assert int(all_steps) < int(steps) + 100


INTERRUPTED_LOAD = """
import os, signal, sys, threading
import specdec_rs as sd
from specdec_rs import _core

threads = len(os.listdir("/proc/self/task"))

def bytes_read():
    with open("/proc/self/io") as counts:
        return int(counts.readline().removeprefix("rchar:"))

before = bytes_read()

def interrupt(done, total):
    os.kill(os.getpid(), signal.SIGINT)

try:
    _core.Engine.load(
        sys.argv[1], max_model_len=None, max_num_seqs=1, num_threads=None, seed=0,
        speculation=None, chat_template=None, progress=interrupt,
    )
    print("loaded")
except KeyboardInterrupt:
    print("interrupted")
while len(os.listdir("/proc/self/task")) > threads:
    pass
print(bytes_read() - before)
"""


def test_a_load_is_interrupted_and_ends(smollm2: Path) -> None:
    done = run(INTERRUPTED_LOAD, smollm2)
    word, read = done.stdout.split()
    assert word == "interrupted"
    assert int(read) < smollm2.stat().st_size, "its thread went on to the end"


def test_an_exception_of_the_display_ends_the_load(tiny: Path) -> None:
    from specdec_rs import _core

    def broken(done: int, total: int) -> None:
        raise ZeroDivisionError(f"{done} of {total}")

    with pytest.raises(ZeroDivisionError):
        _core.Engine.load(
            tiny,
            max_model_len=None,
            max_num_seqs=1,
            num_threads=1,
            seed=0,
            speculation=None,
            chat_template=None,
            progress=broken,
        )


# The text takes many times as long to read as the interruption takes to come. The clock is the
# process's own: it stands still while others have the machine.
INTERRUPTED_ENCODE = """
import os, signal, sys, threading, time
import specdec_rs as sd

llm = sd.LLM(sys.argv[1])
text = "a b" * 30_000_000
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    llm.get_tokenizer().encode(text)
    print("read")
except KeyboardInterrupt:
    print("interrupted")
os._exit(0)
"""


def test_a_long_text_is_interrupted(smollm2: Path) -> None:
    assert run(INTERRUPTED_ENCODE, smollm2).stdout.strip() == "interrupted"
