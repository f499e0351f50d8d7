"""The testkit's folders are what transformers reads: it gets the committed logits from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from test_vectors import near
from tiny import VECTORS, cook_folder
from transformers import AutoModelForCausalLM
from vectors import FILES


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
