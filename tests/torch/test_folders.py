"""The testkit's folders are what transformers reads: the committed logits, and our token ids."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from test_vectors import near
from tiny import VECTORS, cook_folder
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM
from vectors import FILES

from specdec_rs import LLM

TEXTS = [
    "hello world, the others'll see it's 1234",
    "<|im_start|>user\nhi<|im_end|>",
    "  a  b\n\nc\t\tx  ",
    "\u00e9\u00fc \u65e5\u672c\u8a9e \U0001f642",
    "of<|endoftext|>x",
]


@pytest.mark.parametrize("file", [file for file in FILES if file != "tiny_quant"])
def test_transformers_reads_our_folders(file: str, tmp_path: Path) -> None:
    case = json.loads((VECTORS / f"{file}.json").read_text())[0]
    folder = cook_folder(case["recipe"], tmp_path)
    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    with torch.inference_mode():
        rows = model(input_ids=torch.tensor([case["prompt"]]), use_cache=False).logits[0].numpy()
    near(np.array(rows[case["logits_at"]]), case["prompt_logits"])
    theirs = Tokenizer.from_file(str(folder / "tokenizer.json"))
    with LLM(folder) as llm:
        for text in TEXTS:
            assert llm.get_tokenizer().encode(text) == theirs.encode(text).ids, text
