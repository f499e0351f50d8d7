"""The committed vectors `tests/vectors/tiny_*.json`: recipes, tokens and the oracle's logits.

A case is a model recipe, a prompt, and rounds. A round is a token tree behind the context, its
logits, and the path of nodes that is kept before the next round. `prompt_logits` has a row for
every position in `logits_at`. The files are written anew by
`PYTHONPATH=tests/oracle .venv-torch/bin/python tests/torch/vectors.py`.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import numpy as np
from oracle import Oracle
from tiny import VECTORS, cook

# A round's tree has two roots, siblings, and nodes in no depth-first order; the path that is kept
# ends in the middle of it, so that later nodes have to be dropped between kept ones.
TREES = [
    {"parents": [-1, 0, -1, 0, 1, 3, 2, 5], "commit": [0, 3, 5]},
    {"parents": [-1, 0, 0, 2, 1], "commit": [0, 2]},
    {"parents": [-1, 0], "commit": []},
]

LLAMA = {"arch": "llama", "vocab": 272}
QWEN2 = {"arch": "qwen2", "vocab": 272, "rope_base": 1e6, "norm_eps": 1e-6}
QWEN3 = QWEN2 | {"arch": "qwen3"}
GEMMA3 = LLAMA | {"arch": "gemma3", "layers": 7, "window": 8, "rope_base": 1e6, "norm_eps": 1e-6}
PHI3 = LLAMA | {"arch": "phi3", "tied": False}
# Original contexts short enough for the prompts to have pairs of every kind.
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
K_SIZES = {"hidden": 256, "heads": 8, "head_dim": 32, "ffn": 512, "tied": False}
Q6_ROLES = dict.fromkeys(("attn_v", "ffn_down", "output"), "q6_k")
Q5_ROLES = dict.fromkeys(("ffn_gate", "ffn_up", "ffn_down"), "q5_0")

# Name -> (recipe, prompt length). Pages hold 64 positions: some prompts cross the border, in others
# a tree does.
FILES = {
    "tiny_llama": {
        "grouped_heads_tied": (LLAMA | {"seed": 11}, 70),
        "wide_heads_own_head": (
            LLAMA | {"seed": 12, "layers": 3, "kv_heads": 1, "head_dim": 32, "tied": False},
            60,
        ),
    },
    "tiny_qwen2": {
        "biases_own_head": (QWEN2 | {"seed": 21, "tied": False}, 61),
        "biases_tied": (QWEN2 | {"seed": 22, "heads": 2, "head_dim": 32}, 9),
    },
    "tiny_qwen3": {
        "head_norms": (QWEN3 | {"seed": 41, "tied": False, "head_dim": 32}, 66),
    },
    "tiny_gemma3": {
        # Window 8 on layers 0 to 4; trees and pages cross its edge.
        "windows_and_post_norms": (GEMMA3 | {"seed": 51, "head_dim": 32}, 70),
        "one_wide_head": (GEMMA3 | {"seed": 52, "heads": 1, "kv_heads": 1, "window": 3}, 21),
        "stretched_outside_windows": (
            GEMMA3 | {"seed": 53, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
            40,
        ),
    },
    "tiny_phi3": {
        "fused_with_window": (PHI3 | {"seed": 61, "window": 16}, 65),
        "fused_without": (PHI3 | {"seed": 62, "kv_heads": 4}, 30),
    },
    "tiny_mistral": {
        "window_of_a_page": (LLAMA | {"seed": 71, "window": 64, "tied": False}, 80),
        "window_of_five": (LLAMA | {"seed": 72, "window": 5}, 67),
        "window_of_one": (LLAMA | {"seed": 73, "window": 1}, 12),
    },
    "tiny_rope": {
        "linear": (
            LLAMA | {"seed": 81, "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
            40,
        ),
        "llama3": (LLAMA | {"seed": 82, "head_dim": 32, "rope_scaling": LLAMA3}, 66),
        "yarn": (QWEN2 | {"seed": 83, "rope_scaling": YARN}, 66),
    },
    "tiny_quant": {
        "q4_1_q5_0_q8_0": (
            LLAMA | {"seed": 31, "format": "q4_1", "formats": {"token_embd": "q8_0"} | Q5_ROLES},
            63,
        ),
        "q4_k_q6_k": (LLAMA | K_SIZES | {"seed": 32, "format": "q4_k", "formats": Q6_ROLES}, 20),
    },
}


def oracle_of(recipe: dict) -> Oracle:
    """The oracle of the model that the testkit makes from `recipe`."""
    with tempfile.TemporaryDirectory() as folder:
        return Oracle(cook(recipe, Path(folder)), recipe)


def answer(case: dict) -> dict:
    """The case with the oracle's logits in place of whatever logits it had."""
    oracle = oracle_of(case["recipe"])
    context = list(case["prompt"])
    rows = oracle.logits(context)
    rounds = []
    for turn in case["rounds"]:
        logits = oracle.tree_logits(context, turn["tokens"], turn["parents"])
        rounds.append(turn | {"logits": logits})
        context += [turn["tokens"][node] for node in turn["commit"]]
    return case | {"prompt_logits": rows[case["logits_at"]], "rounds": rounds}


def invent(name: str, recipe: dict, length: int) -> dict:
    """A case with random tokens."""
    rng = np.random.default_rng(recipe["seed"])

    def draw(count: int) -> list[int]:
        return rng.choice(recipe["vocab"], count, replace=False).tolist()

    at = sorted({0, length // 2, length - 2, length - 1})
    rounds = [{"tokens": draw(len(tree["parents"]))} | tree for tree in TREES]
    return {
        "name": name,
        "recipe": recipe,
        "prompt": draw(length),
        "logits_at": at,
        "prompt_logits": [],
        "rounds": rounds,
    }


def to_json(cases: list[dict]) -> str:
    """JSON with one line a row, floats as the shortest text that names the same f32."""

    def plain(value: object) -> object:
        if isinstance(value, np.ndarray):
            return [[float(str(x)) for x in row] for row in value]
        raise TypeError(type(value))

    text = json.dumps(cases, indent=1, default=plain)
    flat = re.compile(r"\[\s+([^\[\]{}]*?)\s+\]")
    return flat.sub(lambda m: "[" + re.sub(r"\s+", "", m.group(1)) + "]", text) + "\n"


def main() -> None:
    """Writes every file."""
    VECTORS.mkdir(exist_ok=True)
    for file, cases in FILES.items():
        answered = [answer(invent(name, *case)) for name, case in cases.items()]
        (VECTORS / f"{file}.json").write_text(to_json(answered))


if __name__ == "__main__":
    main()
