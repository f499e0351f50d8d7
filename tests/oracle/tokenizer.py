"""The committed vectors `tests/vectors/tokenizer_*.json`: token ids by llama.cpp.

A case is a text, its ids with control tokens parsed (`parse`), and its ids with them taken as text
(`text`). Beside the cases stands the part of the vocabulary that they can touch: the bytes, the
special tokens, and every merge whose product occurs in one of the texts. With it the vectors need
no model file. Run as a script, this module writes the files anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from gguf import GGUFReader
from llama_cpp import LlamaCpp
from tokenizer_texts import ALL

FOLDER = Path(__file__).parents[1] / "vectors"

# File -> the environment variable that holds the model's path.
MODELS = {
    "tokenizer_smollm": "SPECDEC_TEST_MODEL_SMOLLM2",
    "tokenizer_qwen2": "SPECDEC_TEST_MODEL_QWEN15B",
    "tokenizer_gemma3": "SPECDEC_TEST_MODEL_GEMMA3",
}

# Token types of the format.
NORMAL, UNUSED = 1, 5


def cases(path: Path) -> list[dict]:
    """What llama.cpp makes of every text."""
    model = LlamaCpp(path)
    return [
        {
            "content": text,
            "parse": model.tokenize(text),
            "text": model.tokenize(text, special=False),
        }
        for text in ALL
    ]


def byte_alphabet() -> str:
    """GPT-2's character for each byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    chars = {byte: chr(byte) for byte in plain}
    chars |= {byte: chr(256 + rank) for rank, byte in enumerate(others)}
    return "".join(chars[byte] for byte in range(256))


def vocabulary(path: Path) -> dict:
    """The part of the vocabulary that the texts can touch."""
    fields = GGUFReader(path).fields
    if fields["tokenizer.ggml.model"].contents() == "llama":
        return pieces(fields)
    tokens, kinds, merges, pre, eos = (
        fields[f"tokenizer.ggml.{name}"].contents()
        for name in ("tokens", "token_type", "merges", "pre", "eos_token_id")
    )
    alphabet = byte_alphabet()
    written = "\n".join("".join(alphabet[byte] for byte in text.encode()) for text in ALL)
    merges = [merge for merge in merges if merge.replace(" ", "") in written]
    wanted = {part for merge in merges for part in (*merge.split(" "), merge.replace(" ", ""))}
    wanted.update(alphabet)
    kept = [
        [index, text, kind]
        for index, (text, kind) in enumerate(zip(tokens, kinds, strict=True))
        if text in wanted or kind not in (NORMAL, UNUSED)
    ]
    return {"pre": pre, "size": len(tokens), "eos": eos, "tokens": kept, "merges": merges}


def pieces(fields: dict) -> dict:
    """The same of a SentencePiece vocabulary, with the scores of its tokens."""
    tokens, kinds, scores, eos = (
        fields[f"tokenizer.ggml.{name}"].contents()
        for name in ("tokens", "token_type", "scores", "eos_token_id")
    )
    written = "\n".join(ALL).replace(" ", "▁")
    kept = [
        index
        for index, (text, kind) in enumerate(zip(tokens, kinds, strict=True))
        if text in written or (kind != NORMAL and "<unused" not in text)
    ]
    return {
        "model": "llama",
        "pre": "default",
        "size": len(tokens),
        "eos": eos,
        "tokens": [[index, tokens[index], kinds[index]] for index in kept],
        "scores": [scores[index] for index in kept],
        "merges": [],
    }


def vectors(path: Path) -> dict:
    """The content of a file."""
    return {**vocabulary(path), "cases": cases(path)}


def to_json(found: dict) -> str:
    """JSON with one case a line."""
    head = json.dumps({key: found[key] for key in found if key != "cases"})
    lines = ",\n".join(json.dumps(case) for case in found["cases"])
    return f'{head[:-1]}, "cases": [\n{lines}\n]}}\n'


def main() -> None:
    for file, variable in MODELS.items():
        if variable in os.environ:
            text = to_json(vectors(Path(os.environ[variable])))
            (FOLDER / f"{file}.json").write_text(text)


if __name__ == "__main__":
    main()
