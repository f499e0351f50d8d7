"""Loading: options are judged before the model is touched, files by what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

import specdec_rs as sd
from tests.conftest import Cook

NOWHERE = "/nowhere/model.gguf"

BAD: list[tuple[dict[str, Any], str]] = [
    ({"max_model_len": 1}, "max_model_len: found 1"),
    ({"max_model_len": 1.5}, "max_model_len: found 1.5"),
    ({"max_num_seqs": 0}, "max_num_seqs: found 0"),
    ({"max_num_seqs": 1025}, "max_num_seqs: found 1025"),
    ({"num_threads": 0}, "num_threads: found 0"),
    ({"seed": -1}, "seed: found -1"),
    ({"seed": None}, "seed: found None"),
    ({"memory_budget": 0}, "memory_budget: found 0"),
    ({"memory_budget": "4 gigs"}, "memory_budget: found '4 gigs'"),
    ({"memory_budget": 1.5e9}, "memory_budget: found 1500000000.0"),
    ({"quantization": "q5_0"}, "quantization: found 'q5_0'"),
    ({"speculative_config": "ngram"}, "speculative_config: found 'ngram'"),
    ({"speculative_config": {"method": "x"}}, "method: found 'x'"),
    ({"speculative_config": {"num_speculative_token": 1}}, "did you mean"),
]

NOT_YET: list[dict[str, Any]] = [
    {"tokenizer": "other"},
    {"dtype": "float16"},
    {"device": "cuda"},
    {"speculative_config": {"method": "eagle", "model": "x"}},
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_a_bad_option_is_named_before_the_model_is_looked_for(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(sd.ConfigError, match=message):
        sd.LLM(NOWHERE, **options)


@pytest.mark.parametrize("options", NOT_YET)
def test_what_is_missing_is_refused_before_the_model_is_looked_for(
    options: dict[str, Any],
) -> None:
    with pytest.raises(sd.NotSupportedYetError) as caught:
        sd.LLM(NOWHERE, **options)
    assert caught.value.field in {*options, "method"}


def test_a_missing_model() -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        sd.LLM(NOWHERE)


def test_a_context_beyond_the_models(smollm2: Path) -> None:
    with pytest.raises(sd.ConfigError, match=r"max_model_len is 1000000, expected 2\.\.=8192"):
        sd.LLM(smollm2, max_model_len=1_000_000)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is truncated|not a GGUF"),
        (b"GGU", "is truncated|not a GGUF"),
        (b"PK\x03\x04" + b"\0" * 64, "not a GGUF file"),
        (b"GGUF" + b"\xff" * 64, "GGUF"),
        (b"GGUF\x03\0\0\0" + b"\0" * 16, "."),
    ],
    ids=["empty", "short", "zip", "version", "nothing in it"],
)
def test_a_file_that_is_no_model(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(content)
    with pytest.raises(sd.ModelLoadError, match=message):
        sd.LLM(file)


@pytest.mark.parametrize("size", [100_000, 1_000_000, 98_362_431])
def test_a_truncated_model(smollm2: Path, tmp_path: Path, size: int) -> None:
    file = tmp_path / "m.gguf"
    with smollm2.open("rb") as whole:
        file.write_bytes(whole.read(size))
    with pytest.raises(sd.ModelLoadError, match="truncated"):
        sd.LLM(file)


def test_a_text_beyond_all_measure_is_refused_before_it_is_read(tiny: Path) -> None:
    with sd.LLM(tiny, max_model_len=64) as llm:
        for call in (llm.generate, lambda text: llm.chat([{"role": "user", "content": text}])):
            with pytest.raises(sd.SpecdecError, match=r"exceeds|no prompt beyond \d+ bytes"):
                call("x" * 100_000_000)
        # The tokenizer alone takes texts of any length.
        assert len(llm.get_tokenizer().encode("é" * 100_000)) > 64


@pytest.mark.parametrize("arch", ["qwen2", "qwen3", "gemma3", "phi3"])
def test_a_folder_of_transformers_answers_as_the_gguf_file(cook: Cook, arch: str) -> None:
    recipe = {"arch": arch, "seed": 5}
    greedy = sd.SamplingParams(temperature=0, max_tokens=16, ignore_eos=True)
    answers = []
    for folder in (False, True):
        with sd.LLM(cook(folder=folder, **recipe)) as llm:
            (output,) = llm.generate("Hello the world 12", greedy, use_tqdm=False)
            (chat,) = llm.chat([{"role": "user", "content": "<|im_end|>"}], greedy, use_tqdm=False)
            answers.append((output.prompt_token_ids, output.outputs[0].token_ids, chat))
    (file_prompt, file_tokens, file_chat), (prompt, tokens, chat) = answers
    assert (prompt, tokens) == (file_prompt, file_tokens)
    assert chat.prompt_token_ids == file_chat.prompt_token_ids


def test_weights_quantised_at_load_are_smaller_and_drafts_change_no_token(tiny: Path) -> None:
    sizes: dict[str | None, int] = {}
    kinds: tuple[Literal["q8_0", "q4_0"] | None, ...] = (None, "q8_0", "q4_0")
    for quantization in kinds:
        texts = []
        for config in (None, {"method": "ngram", "prompt_lookup_min": 1}):
            with sd.LLM(tiny, quantization=quantization, speculative_config=config) as llm:
                params = sd.SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)
                output = llm.generate("ab ab ab", params, use_tqdm=False)[0]
                texts.append(output.outputs[0].token_ids)
                sizes[quantization] = llm.memory.weights
        assert texts[0] == texts[1]
    assert sizes["q4_0"] < sizes["q8_0"] < sizes[None]
