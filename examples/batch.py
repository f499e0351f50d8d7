"""Answers many prompts: a few at a time run together, the rest wait their turn.

python examples/batch.py --tokens 24
"""

from __future__ import annotations

import argparse

from specdec_rs import LLM, SamplingParams

PROMPTS = [f"The number after {number} is" for number in range(1, 13)]


def main() -> None:
    """Prints one line for each prompt, in order."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="smollm2-135m")
    options.add_argument("--tokens", type=int, default=24)
    given = options.parse_args()
    params = SamplingParams(temperature=0, max_tokens=given.tokens, stop="\n")
    with LLM(given.model, max_model_len=1024, max_num_seqs=4) as llm:
        for answer in llm.generate(PROMPTS, params):
            print(f"{answer.prompt}{answer.outputs[0].text}")


if __name__ == "__main__":
    main()
