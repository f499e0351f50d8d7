"""A child made by fork hears at once that it cannot use the engine; it never hangs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scripts import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

FORKED = """
import os, sys, warnings
import specdec_rs as sd

warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 and newer warn of any fork with threads
llm = sd.LLM(sys.argv[1])
tokenizer = llm.get_tokenizer()
stream = llm.stream("a", sd.SamplingParams(max_tokens=500, ignore_eos=True))
next(stream)
calls = {
    "generate": lambda: llm.generate("a", use_tqdm=False),
    "chat": lambda: llm.chat([{"role": "user", "content": "a"}], use_tqdm=False),
    "stream": lambda: llm.stream("a"),
    "next": lambda: next(stream),
    "encode": lambda: tokenizer.encode("a"),
    "decode": lambda: tokenizer.decode([1]),
    "metrics": llm.get_metrics,
    "reset": llm.reset_metrics,
}
child = os.fork()
if child == 0:
    for name, call in calls.items():
        try:
            call()
            print(name, "answered", flush=True)
        except sd.ForkError as error:
            print(name, "spawn" in str(error), flush=True)
    llm.close()
    with sd.LLM(sys.argv[1], num_threads=2) as own:
        one = sd.SamplingParams(max_tokens=1)
        print("own", len(own.generate("a", one, use_tqdm=False)), flush=True)
    sys.exit(0)  # with everything that the end of an interpreter does
print("child", os.waitpid(child, 0)[1])
print("parent", len(list(stream)) > 1)
"""


def test_every_call_in_a_child_says_so_and_the_parent_goes_on(smollm2: Path) -> None:
    done = run(FORKED, smollm2)
    assert done.returncode == 0, done.stderr
    names = ("generate", "chat", "stream", "next", "encode", "decode", "metrics", "reset")
    assert done.stdout.splitlines() == [
        *(f"{name} True" for name in names),
        "own 1",
        "child 0",
        "parent True",
    ]


POOL = """
import multiprocessing, sys
import specdec_rs as sd

def work(_):
    try:
        llm.generate("a", use_tqdm=False)
    except sd.ForkError:
        return "ForkError"

if __name__ == "__main__":
    llm = sd.LLM(sys.argv[1])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(set(pool.map(work, range(8))))
"""


def test_a_pool_of_forked_workers_gets_the_error(tiny: Path, tmp_path: Path) -> None:
    done = run(f"import warnings; warnings.simplefilter('ignore')\n{POOL}", tiny)
    assert done.stdout.strip() == "{'ForkError'}", done.stderr
