"""An edit of a text: what stays the same is found in the text itself, without a second model.

python examples/ngram.py
"""

from __future__ import annotations

import argparse

from specdec_rs import LLM, SamplingParams

CODE = """def mean(values):
    sum = 0
    for value in values:
        sum = sum + value
    return sum / len(values)
"""
TASK = f"Write this again, with `total` instead of `sum`:\n\n{CODE}"


def main() -> None:
    """Prints the new text and how much of it was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="smollm2-135m")
    options.add_argument("--tokens", type=int, default=128)
    given = options.parse_args()
    config = {
        "method": "ngram",
        "num_speculative_tokens": 6,
        "prompt_lookup_min": 2,
        "prompt_lookup_max": 4,
    }
    # What the answer will resemble is looked up too; here the prompt holds it already.
    params = SamplingParams(temperature=0, max_tokens=given.tokens, prediction=CODE)
    with LLM(given.model, max_model_len=2048, speculative_config=config) as llm:
        [answer] = llm.chat([{"role": "user", "content": TASK}], params)
    print(answer.outputs[0].text)
    stats = answer.metrics.speculative_decoding
    if stats is not None:
        tokens = len(answer.outputs[0].token_ids)
        print(f"{stats.num_accepted_draft_tokens} of {tokens} tokens were found in the text")
        print("drafts ended:", stats.draft_stop_reasons)


if __name__ == "__main__":
    main()
