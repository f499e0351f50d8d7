"""Files that are no model, or a damaged one: a typed error that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import specdec_rs as sd

# What each fault of the testkit must say. The whole table of faults is in the engine's own tests;
# here it is the way to Python that matters.
FAULTS = {
    "empty-file": "truncated",
    "wrong-magic": "not a GGUF file",
    "unknown-version": "version .* is not supported",
    "truncated-header": "truncated",
    "truncated-data": "fetch it again",
    "unknown-architecture": "is not supported; use a model of one of these: .*llama",
    "missing-key": "has no metadata key",
    "missing-tensor": "tensor",
    "wrong-shape": "has dimensions .* the configuration demands",
    "nan-weight": "not finite",
    "infinite-weight": "not finite",
    "nan-norm": "not finite",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_file_is_refused_by_name(cook: Callable[..., Path], fault: str) -> None:
    file = cook(fault=fault)
    with pytest.raises(sd.ModelLoadError, match=f"(?i){FAULTS[fault]}") as refusal:
        sd.LLM(file)
    assert isinstance(refusal.value, RuntimeError)
    assert str(file) in str(refusal.value.__notes__)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file, folder or catalogue model"):
        sd.LLM(tmp_path / "none.gguf")


def test_a_file_that_goes_between_looking_and_opening(tmp_path: Path) -> None:
    from specdec_rs import _core

    with pytest.raises(sd.ModelNotFoundError, match="no such model file"):
        _core.pass_costs(tmp_path / "none.gguf", context=1, widest=1, repeats=1)


def test_a_template_that_does_not_compile(tiny: Path) -> None:
    with pytest.raises(sd.ConfigError, match="template does not compile, line 1"):
        sd.LLM(tiny, chat_template="{% if %}")


def test_a_model_that_computes_no_numbers(cook: Callable[..., Path]) -> None:
    """Weights are finite, their products are not: found at the first token, not at loading."""
    with sd.LLM(cook(spread=3e38, tied=False)) as llm:
        with pytest.raises(sd.LogitsError, match="expected a finite number"):
            llm.generate("abc", sd.SamplingParams(temperature=0), use_tqdm=False)
        # The engine lives; only the request failed.
        assert llm.get_metrics().num_steps > 0
