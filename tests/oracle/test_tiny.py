"""llama.cpp reads the testkit's files and agrees with the committed logits of transformers.

Two oracles that share no code: what both say about the order of rotated rows, biases, grouped heads
and block formats is what a GGUF file means.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from llama_cpp import LlamaCpp
from tiny import VECTORS, cook

# F32 weights and cache: the bound the engine is held to (measured: 5e-5).
DENSE = 2e-4
# ggml reads GELU from a table of half precision (measured: 2e-3, at worst 4e-3).
HALF_GELU = 1e-2
# Block formats: llama.cpp rounds activations to 8 bits per block. Root mean square over a row whose
# deviation is 2.6 (measured: 0.15, at worst 0.39); rows of different models differ by 3.7.
QUANTISED = 0.6


# llama.cpp computes Phi-3 without its window, so only one of these cases can agree.
FILES = ["tiny_llama", "tiny_qwen2", "tiny_qwen3", "tiny_gemma3", "tiny_phi3", "tiny_rope"]


@pytest.mark.parametrize("file", [*FILES, "tiny_quant"])
def test_llama_cpp_agrees(file: str, tmp_path: Path) -> None:
    for case in json.loads((VECTORS / f"{file}.json").read_text()):
        if case["recipe"]["arch"] == "phi3" and "window" in case["recipe"]:
            continue
        model = LlamaCpp(cook(case["recipe"], tmp_path), exact=True)
        for tokens, logits in questions(case):
            said = dict(model.next_logprobs(tokens, len(logits)))
            assert len(said) == len(logits)
            theirs = np.array([said[token] for token in range(len(logits))])
            off = theirs - log_softmax(np.array(logits))
            if file == "tiny_quant":
                assert np.sqrt(np.mean(off**2)) < QUANTISED, (case["name"], len(tokens))
            else:
                bound = HALF_GELU if file == "tiny_gemma3" else DENSE
                assert np.abs(off).max() < bound, (case["name"], len(tokens))


def questions(case: dict) -> list[tuple[list[int], list[float]]]:
    """Sequences and the logits after their last token."""
    prompt = case["prompt"]
    asked = [
        (prompt[: at + 1], logits)
        for at, logits in zip(case["logits_at"], case["prompt_logits"], strict=True)
    ]
    context = list(prompt)
    for turn in case["rounds"]:
        tokens, parents = turn["tokens"], turn["parents"]
        for node, logits in enumerate(turn["logits"]):
            path = []
            while node >= 0:
                path.append(tokens[node])
                node = parents[node]  # noqa: PLW2901
            asked.append((context + path[::-1], logits))
        context += [tokens[node] for node in turn["commit"]]
    return asked


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities of one row."""
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())
