"""llama.cpp's own bench programs, as `llama_cpp.sh` builds them."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Llama:
    """Its programs in a folder, run with some threads on a model."""

    programs: Path
    model: Path
    threads: int

    def decode(self, tokens: int, depth: int) -> float:
        """Tokens per second of plain decoding behind `depth` tokens."""
        (found,) = self._bench("-p", "0", "-n", str(tokens), "-d", str(depth))
        return float(found["avg_ts"])

    def prefill(self, tokens: int) -> float:
        """Tokens per second of reading a prompt."""
        (found,) = self._bench("-p", str(tokens), "-n", "0")
        return float(found["avg_ts"])

    def passes(self, widths: Sequence[int], context: int, steps: int = 8) -> dict[int, float]:
        """Milliseconds of a pass of so many rows, each with logits.

        A row is a token of one of as many sequences, which share their prompt of `context` tokens.
        """
        size = context + max(widths) * (steps + 1) + 64
        found = self._run(
            "llama-batched-bench",
            *("-t", str(self.threads), "-c", str(size), "-npp", str(context), "-ntg", str(steps)),
            *("-npl", ",".join(map(str, widths)), "-pps", "-kvu", "--output-format", "jsonl"),
        )
        return {int(one["pl"]): 1e3 * float(one["t_tg"]) / steps for one in found}

    def _bench(self, *arguments: str) -> list[dict[str, Any]]:
        return self._run(
            "llama-bench", "-t", str(self.threads), "-r", "1", "-o", "jsonl", *arguments
        )

    def _run(self, program: str, *arguments: str) -> list[dict[str, Any]]:
        command = [str(self.programs / program), "-m", str(self.model), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode != 0 or not lines:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        return [json.loads(line) for line in lines]


def medians(runs: Sequence[dict[int, float]]) -> dict[int, float]:
    """The median time of each width over several runs."""
    return {width: statistics.median(run[width] for run in runs) for width in runs[0]}
