"""Read by mypy, never run: what a typed caller writes must check, and mistakes must not.

An ignore that suppresses nothing is an error under `--strict`, so each one states that the line
is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np
import numpy.typing as npt

import specdec_rs as sd
from specdec_rs import numpy as sdn

params = sd.SamplingParams(temperature=0, top_k=40, stop=["a"], stop_token_ids=(1, 2), seed=None)
assert_type(params.temperature, float)
assert_type(params.max_tokens, int | None)
assert_type(params.greedy, bool)

sd.SamplingParams(temperature="hot")  # type: ignore[arg-type]
sd.SamplingParams(temprature=0)  # type: ignore[call-arg]
sd.SamplingParams(0.5)  # type: ignore[call-arg, arg-type]
params.seed = 3  # type: ignore[misc]

config = sd.SpeculativeConfig(method="ngram", num_speculative_tokens=4, model=Path("x"))
assert_type(sd.SpeculativeConfig.of("auto"), sd.SpeculativeConfig | None)
sd.SpeculativeConfig(rejection_sample_method="strict")  # type: ignore[arg-type]


def reads(output: sd.RequestOutput) -> None:
    """Outputs keep their types down to the last field."""
    answer = output.outputs[0]
    assert_type(answer.token_ids, list[int])
    assert_type(answer.logprobs, list[dict[int, sd.Logprob]] | None)
    assert_type(answer.finish_reason, sd.FinishReason | None)
    stats = output.metrics.speculative_decoding
    print(stats.num_spec_steps)  # type: ignore[union-attr]
    if stats is not None:
        assert_type(stats.acceptance_histogram, list[int])


def calls(llm: sd.LLM) -> None:
    """The calls keep their types, and mistakes are refused."""
    assert_type(llm.generate("a"), list[sd.RequestOutput])
    assert_type(llm.generate(["a"], [params], use_tqdm=False), list[sd.RequestOutput])
    ids: sd.TokensPrompt = {"prompt_token_ids": [1, 2]}
    assert_type(llm.generate([ids, "a", {"prompt": "a"}]), list[sd.RequestOutput])
    assert_type(llm.chat([{"role": "user", "content": "a"}]), list[sd.RequestOutput])
    assert_type(llm.chat([[{"role": "user", "content": "a"}]]), list[sd.RequestOutput])
    assert_type(llm.get_tokenizer().encode("a"), list[int])
    for chunk in llm.stream("a"):
        assert_type(chunk.token_ids, list[int])
    with llm.stream(ids) as stream:
        assert_type(stream, sd.TextStream)
        assert_type(next(stream).output, sd.RequestOutput | None)
    assert_type(llm.get_metrics().forward_by_rows, dict[int, tuple[int, float]])
    assert_type(llm.memory.kv_cache_tokens, int)
    llm.generate("a", params, False)  # type: ignore[call-arg]
    llm.generate("a", {"temperature": 0})  # type: ignore[arg-type]
    widths: dict[str, int] = {"num_speculative_tokens": 4}
    sd.LLM("m", speculative_config=widths)
    sd.LLM("m", speculative_config="always")  # type: ignore[arg-type]
    sd.LLM("m", max_len=3)  # type: ignore[arg-type]


async def asynchronous() -> None:
    """A context manager with the options of `LLM`, and iterators of outputs."""
    async with sd.AsyncLLM("m", max_num_seqs=2) as llm:
        assert_type(llm, sd.AsyncLLM)
        async for output in llm.generate("a", params, request_id="x"):
            assert_type(output, sd.RequestOutput)
    sd.AsyncLLM("m", max_len=3)  # type: ignore[call-arg]


def primitives(probs: npt.NDArray[np.float32]) -> None:
    """Arrays of any floating type go in, plain numbers come out."""
    found = sdn.verify_chain(probs, probs[1:], [1], method="block", seed=1)
    assert_type(found, sdn.Verified)
    assert_type(found.token_ids, list[int])
    assert_type(sdn.process_logits(probs[0], params), npt.NDArray[np.float64])
    assert_type(sdn.build_tree([[1, 2]]).parents, npt.NDArray[np.int64])
    sdn.verify_chain(probs, probs, [1], seed=1)  # type: ignore[call-arg]


assert_type(sd.build_info(), dict[str, str])
assert_type(sd.__version__, str)
