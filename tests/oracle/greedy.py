"""The committed vectors `tests/vectors/greedy_*.json`: what llama.cpp says next, greedily.

A case is a prompt with its token ids, the 32 tokens that follow, and the gap between the two best
logits at each of them. The files are written anew by
`.venv-oracle/bin/python tests/oracle/greedy.py` with the variables of `MODELS` set.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from llama_cpp import LlamaCpp
from tiny import VECTORS

TOKENS = 32

# File -> the environment variable that holds the model's path.
MODELS = {
    "greedy_smollm2": "SPECDEC_TEST_MODEL_SMOLLM2",
    "greedy_qwen1.5b": "SPECDEC_TEST_MODEL_QWEN15B",
    "greedy_gemma3": "SPECDEC_TEST_MODEL_GEMMA3",
}

# What begins every sequence of a model.
STARTS = {"greedy_gemma3": [2]}


def chat(text: str) -> str:
    """One user message, as both models' templates write it."""
    system = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    return f"{system}<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n    if n < 2:\n        return n\n",
    "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,",
    "Once upon a time, in a small village by the sea, there lived an old fisherman who",
    "SELECT name, COUNT(*) FROM orders WHERE",
    "#include <stdio.h>\n\nint main(void) {\n",
    '{"name": "Ada", "born": 1815, "field": "mathematics"}\n{"name": "Alan", "born":',
    chat("Name three colours of the rainbow."),
    chat("Write a Python function that reverses a list in place."),
    chat("Übersetze ins Englische: Der Zug nach Köln fährt um 8:45 Uhr ab. 東京 🚆"),
]


# Longer than the window of 512 that most layers of gemma3 have: what they see has to move.
FAR = "".join(f"Item {n} of the list costs {n * 7 % 90 + 10} coins.\n" for n in range(1, 60))


def prompts(file: str) -> list[str]:
    """The prompts of a file."""
    return [*PROMPTS, FAR] if file in STARTS else PROMPTS


def rounded_step(model: LlamaCpp, tokens: list[int]) -> tuple[int, float]:
    """The most probable next token and its lead in logits over the second."""
    (best, first), (_, second) = model.next_logprobs(tokens, 2)
    return best, round(first - second, 4)


def follow(model: LlamaCpp, prompt: str, start: list[int]) -> dict:
    """A case."""
    ids = start + model.tokenize(prompt)
    tokens: list[int] = []
    gaps: list[float] = []
    for _ in range(TOKENS):
        token, gap = rounded_step(model, ids + tokens)
        tokens.append(token)
        gaps.append(gap)
    return {"prompt": prompt, "prompt_token_ids": ids, "token_ids": tokens, "gaps": gaps}


def main() -> None:
    """Writes the file of every model whose path is given."""
    for file, variable in MODELS.items():
        if variable in os.environ:
            model = LlamaCpp(Path(os.environ[variable]), context=2048)
            start = STARTS.get(file, [])
            cases = [follow(model, prompt, start) for prompt in prompts(file)]
            lines = [json.dumps(case, ensure_ascii=False) for case in cases]
            (VECTORS / f"{file}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
