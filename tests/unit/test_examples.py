"""Every script of examples/ runs, on the small model."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.scripts import AT_A_TERMINAL, PATIENCE, ROOT, output

EXAMPLES = ROOT / "examples"
SMALL = "smollm2-135m"


def run(name: str, *arguments: str, said: str = "") -> str:
    return output(sys.executable, "-W", "error", EXAMPLES / name, *arguments, said=said)


def test_every_example_has_its_test() -> None:
    tests = Path(__file__).read_text()
    scripts = [path.name for path in EXAMPLES.glob("*.py")]
    assert scripts
    assert [name for name in scripts if f'"{name}"' not in tests] == []


def test_a_batch_keeps_its_order() -> None:
    lines = run("batch.py", "--tokens", "8").splitlines()
    assert [line[: len("The number after 10")].split()[3] for line in lines] == [
        str(number) for number in range(1, 13)
    ]


def test_a_chat_of_two_turns() -> None:
    said = "Hello\nWho are you?\n\n"
    first = run("chat.py", "--tokens", "8", "--seed", "1", said=said)
    assert len(first.split()) > 8
    assert run("chat.py", "--tokens", "8", "--seed", "1", said=said) == first


def test_a_draft_model_leaves_the_text() -> None:
    out = run("draft_model.py", "--model", SMALL, "--draft", SMALL, "--tokens", "24")
    (steps,) = re.findall(r"^([\d.]+) tokens a step$", out, re.MULTILINE)
    assert 1 < float(steps) <= 4


def test_an_edit_finds_its_text() -> None:
    (found,) = re.findall(r"^(\d+) of \d+ tokens were found", run("ngram.py"), re.MULTILINE)
    assert int(found) > 0


@contextmanager
def service(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The service and its port; it is interrupted at the end, and ends well."""
    script = EXAMPLES / "service.py"
    code = f"{AT_A_TERMINAL}import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    with subprocess.Popen(
        [sys.executable, "-c", code, "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    ) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline().removeprefix("port "))
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def ask(port: int, prompt: str) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    client.sendall(f"{prompt}\n".encode())
    return client


def test_a_client_that_leaves_aborts_its_own_request_only() -> None:
    with service("--tokens", "400") as (process, port):
        assert process.stdout is not None
        leaves = ask(port, "Once upon a time")
        assert leaves.recv(1)
        stays = ask(port, "The capital of France is")
        assert stays.recv(1)
        leaves.close()
        assert re.fullmatch(r"client-0: abort, \d+ tokens\n", process.stdout.readline())
        with stays, stays.makefile() as answer:
            assert answer.read()
        assert re.fullmatch(r"client-1: (stop|length), \d+ tokens\n", process.stdout.readline())


def test_a_line_that_is_too_long_is_answered() -> None:
    with service() as (_, port), ask(port, "a" * 100_000) as client, client.makefile() as answer:
        assert answer.read().startswith("error: ")
