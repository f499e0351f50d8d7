"""llama.cpp as an oracle: token ids of a text, and the law of the next token."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

from xllamacpp import CommonParams, Server, ggml_type, llama_flash_attn_type


class LlamaCpp:
    """One model in a server inside this process, on the CPU, one request at a time.

    `exact`: keys and values in f32 and no flash attention, which rounds probabilities to f16.
    """

    def __init__(self, path: Path, *, context: int = 512, exact: bool = False) -> None:
        params = CommonParams()
        params.model.path = str(path)
        params.n_ctx = context
        params.n_parallel = 1
        params.n_gpu_layers = 0
        # Its threads wait for each other by spinning: beside any other busy process, two of them
        # on two cores are many times slower than one.
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.warmup = False
        params.verbosity = 0
        if exact:
            params.flash_attn_type = llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
            params.cache_type_k = params.cache_type_v = ggml_type.GGML_TYPE_F32
        self._server = Server(params)
        (self._ascii,) = self.tokenize("a")

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids without a start token; `special`: whether written specials become specials."""
        body = {"content": text, "add_special": False, "parse_special": special}
        return self._post("/tokenize", body)["tokens"]

    def next_logprobs(self, tokens: list[int], top: int) -> list[tuple[int, float]]:
        """The `top` most probable next tokens and their log-probabilities, best first."""
        body = {
            "prompt": tokens,
            "n_predict": 1,
            "n_probs": top,
            # The server reports nothing for a token that ends within a character, so it is made
            # to draw a letter; the reported law is the one before any bias.
            "logit_bias": [[self._ascii, 1000.0]],
            "temperature": 0,
        }
        (step,) = self._post("/completion", body)["completion_probabilities"]
        return [(entry["id"], entry["logprob"]) for entry in step["top_logprobs"]]

    def _post(self, route: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            self._server.listening_address + route,
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as response:
            return json.load(response)
