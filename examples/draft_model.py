"""A small model drafts for a large one: the same text, in fewer steps.

python examples/draft_model.py --length 3
"""

from __future__ import annotations

import argparse

from specdec_rs import LLM, RequestOutput, SamplingParams, SpeculativeConfig

MESSAGES = [{"role": "user", "content": "Write a Python function that reverses a list."}]


def answer(target: str, config: SpeculativeConfig | None, tokens: int) -> RequestOutput:
    """The greedy answer of `target`, with or without drafts."""
    params = SamplingParams(temperature=0, max_tokens=tokens)
    with LLM(target, max_model_len=2048, max_num_seqs=1, speculative_config=config) as llm:
        [output] = llm.chat(MESSAGES, params)
        return output


def main() -> None:
    """Prints the text and what the drafts were worth; fails if the text is not the plain one."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="qwen2.5-coder-1.5b")
    options.add_argument("--draft", default="qwen2.5-coder-0.5b")
    options.add_argument("--length", type=int, default=3)
    options.add_argument("--tokens", type=int, default=128)
    given = options.parse_args()
    config = SpeculativeConfig(
        method="draft_model",
        model=given.draft,
        num_speculative_tokens=given.length,
        quantization="q4_0",
    )
    plain = answer(given.model, None, given.tokens)
    fast = answer(given.model, config, given.tokens)
    print(fast.outputs[0].text)
    stats = fast.metrics.speculative_decoding
    if stats is None or plain.outputs != fast.outputs:
        raise SystemExit("the draft changed the text")
    print(f"{stats.mean_acceptance_length:.2f} tokens a step")
    print("accepted by depth:", *(f"{share:.0%}" for share in stats.acceptance_by_position))


if __name__ == "__main__":
    main()
