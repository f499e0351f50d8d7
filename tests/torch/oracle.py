"""The reference: a tiny GGUF model as a transformers model in f32, run without a cache.

Tensors are read and de-quantised by the `gguf` package, so nothing here shares code with the
engine. Every question is answered by a plain causal forward of one whole sequence; a tree is
answered path by path.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

CLASSES = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    # Mistral, in a GGUF file: a llama with a window.
    "mistral": (MistralConfig, MistralForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "gemma3": (Gemma3TextConfig, Gemma3ForCausalLM),
    "phi3": (Phi3Config, Phi3ForCausalLM),
}

# GGUF's names of a layer's tensors, and transformers'.
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def own_field(reader: GGUFReader, arch: str, key: str, default: int | None = None) -> Any:
    """The value of the key `arch.key`; `default` where it is absent."""
    field = reader.fields.get(f"{arch}.{key}")
    if field is None and default is not None:
        return default
    return field.contents()


def own_rope(own: Any, arch: str, recipe: dict[str, Any]) -> dict[str, Any]:
    """transformers' `rope_parameters`: the recipe's, for the file has Llama 3's as numbers only."""
    scaling = recipe.get("rope_scaling") or {"rope_type": "default"}
    rope = {"rope_theta": own("rope.freq_base")} | scaling
    if arch != "gemma3":
        return rope
    local = {"rope_type": "default", "rope_theta": 10000.0}
    return {"full_attention": rope, "sliding_attention": local}


class Oracle:
    """One model, f32, eager attention, on the CPU."""

    def __init__(self, path: Path, recipe: dict[str, Any] | None = None) -> None:
        reader = GGUFReader(path)
        self.arch = reader.fields["general.architecture"].contents()
        own = partial(own_field, reader, self.arch)
        tensors = {t.name: dequantize(t.data, t.tensor_type) for t in reader.tensors}
        tensors.pop("rope_freqs.weight", None)
        heads, hidden = own("attention.head_count"), own("embedding_length")
        self.head_dim = own("attention.key_length", hidden // heads)
        window = own("attention.sliding_window", 0)
        name = "mistral" if self.arch == "llama" and window else self.arch
        config_class, model_class = CLASSES[name]
        more = {"sliding_window": window} if window else {}
        if self.arch == "gemma3":
            more["query_pre_attn_scalar"] = self.head_dim
            kinds = ("sliding_attention", "full_attention")
            more["layer_types"] = [kinds[i % 6 == 5] for i in range(own("block_count"))]
        config = config_class(
            vocab_size=len(tensors["token_embd.weight"]),
            hidden_size=hidden,
            intermediate_size=own("feed_forward_length"),
            num_hidden_layers=own("block_count"),
            num_attention_heads=heads,
            num_key_value_heads=own("attention.head_count_kv"),
            head_dim=self.head_dim,
            rms_norm_eps=own("attention.layer_norm_rms_epsilon"),
            max_position_embeddings=own("context_length"),
            rope_parameters=own_rope(own, self.arch, recipe or {}),
            tie_word_embeddings="output.weight" not in tensors,
            attn_implementation="eager",
            pad_token_id=None,
            bos_token_id=None,
            eos_token_id=None,
            **more,
        )
        self.model = model_class(config).to(torch.float32).eval()
        self._load(tensors)

    def _load(self, tensors: dict[str, np.ndarray]) -> None:
        state = {self._name(name): self._tensor(name, data) for name, data in tensors.items()}
        missing, unexpected = self.model.load_state_dict(state, strict=False)
        assert not unexpected, unexpected
        # A tied head is the only parameter that has no tensor of its own.
        assert set(missing) <= {"lm_head.weight"}, missing
        if missing:
            assert self.model.lm_head.weight is self.model.model.embed_tokens.weight

    def _name(self, name: str) -> str:
        part, kind = name.rsplit(".", 1)
        if part in TOP:
            return f"{TOP[part]}.{kind}"
        _, layer, part = part.split(".")
        theirs = LAYER[part]
        if self.arch == "gemma3" and part == "ffn_norm":
            theirs = "pre_feedforward_layernorm"
        if self.arch == "phi3" and part == "ffn_up":
            theirs = "mlp.gate_up_proj"
        return f"model.layers.{layer}.{theirs}.{kind}"

    def _tensor(self, name: str, data: np.ndarray) -> torch.Tensor:
        if self.arch == "llama" and name.endswith(("attn_q.weight", "attn_k.weight")):
            # The file's rows 2i and 2i + 1 of a head rotate together; transformers rotates
            # rows i and i + d/2.
            rows, cols = data.shape
            pairs = data.reshape(rows // self.head_dim, self.head_dim // 2, 2, cols)
            data = pairs.swapaxes(1, 2).reshape(rows, cols)
        if self.arch == "gemma3" and "norm" in name:
            # The file holds what the norm multiplies by, transformers that less 1.
            data = data - 1
        return torch.tensor(data, dtype=torch.float32)

    @torch.inference_mode()
    def logits(self, tokens: list[int]) -> np.ndarray:
        """The logits after every token of one sequence, of shape (len(tokens), vocab)."""
        batch = torch.tensor([tokens], dtype=torch.long)
        return self.model(input_ids=batch, use_cache=False).logits[0].numpy()

    def tree_logits(self, context: list[int], tokens: list[int], parents: list[int]) -> np.ndarray:
        """The logits after every node of a tree, of shape (nodes, vocab).

        Node i holds `tokens[i]` behind node `parents[i]`, or behind the context where that is -1.
        The path to each node is run alone.
        """
        rows = []
        for node in range(len(tokens)):
            path = path_to(node, parents)
            rows.append(self.logits(context + [tokens[i] for i in path])[-1])
        return np.stack(rows)


def path_to(node: int, parents: list[int]) -> list[int]:
    """The nodes from a child of the root to `node`."""
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return path[::-1]
