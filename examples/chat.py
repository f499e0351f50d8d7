"""Talks with a model: a line in, an answer out as it comes; an empty line ends it.

python examples/chat.py --seed 1
"""

from __future__ import annotations

import argparse
import sys

from specdec_rs import LLM, ContextLengthError, SamplingParams


def listen() -> str:
    """The next line of the person or pipe; empty at the end."""
    try:
        return input("> ").strip()
    except EOFError:
        return ""


def main() -> None:
    """One conversation; each answer becomes a part of it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="smollm2-135m")
    options.add_argument("--tokens", type=int, default=256)
    options.add_argument("--seed", type=int, default=None)
    given = options.parse_args()
    params = SamplingParams(temperature=0.7, top_p=0.9, seed=given.seed, max_tokens=given.tokens)
    messages: list[dict[str, str]] = []
    with LLM(given.model, max_num_seqs=1) as llm:
        while said := listen():
            messages.append({"role": "user", "content": said})
            try:
                stream = llm.stream(messages, params)
            except ContextLengthError as error:
                sys.exit(f"the conversation has become too long: {error}")
            text = ""
            for chunk in stream:
                print(chunk.text, end="", flush=True)
                text += chunk.text
            print()
            messages.append({"role": "assistant", "content": text})


if __name__ == "__main__":
    main()
