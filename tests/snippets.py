"""Runs what a page of documentation shows: its fenced blocks, in order, as a reader would.

Blocks of Python share one interpreter, as in one session. A block of text under a block of code is
what that code prints. The larger models of the catalogue stand for any model here: the small one
takes their place.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.scripts import ROOT, output

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LARGER = re.compile(r"qwen2\.5-coder-[\d.]+b")

# What runs a page's blocks of Python: reads them as JSON, writes what each printed as JSON.
_SESSION = """
import contextlib, io, json, sys
session = {"__name__": "__main__"}
printed = []
for line, code in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile("\\n" * line + code, sys.argv[1], "exec"), session)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the line of its fence (from 1), and what is in it."""

    language: str
    line: int
    content: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page; one whose fence names no language is an error."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(match[1], text.count("\n", 0, match.start()) + 1, match[2])
        for match in _FENCE.finditer(text)
    ]
    fences = re.findall(r"^```", text, re.MULTILINE)
    assert len(fences) == 2 * len(found), f"{page}: a fence without a language or without an end"
    return found


def python(page: Path, code: list[Block]) -> list[str]:
    """Run blocks of Python in one interpreter; what each printed."""
    given = [(block.line, _LARGER.sub("smollm2-135m", block.content)) for block in code]
    told = output(sys.executable, "-W", "error", "-c", _SESSION, page, said=json.dumps(given))
    printed: list[str] = json.loads(told.splitlines()[-1])
    return printed


def shell(block: Block, folder: Path) -> str:
    """Run a block of shell commands in `folder`; what they print.

    `make` only says what it would do: its targets are the entries that run these tests.
    """
    makes = block.content.startswith("make ")
    command = _LARGER.sub("smollm2-135m", block.content)
    return output(
        *("bash", "-euo", "pipefail", "-c", command),
        cwd=ROOT if makes else folder,
        env={
            **os.environ,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "MAKEFLAGS": "--dry-run" if makes else "",
        },
    )
