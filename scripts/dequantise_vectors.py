"""Writes tests/vectors/dequantise.json: blocks of every format and the numbers they mean.

The meaning comes from the `gguf` package (pip install gguf numpy). Bytes are random except for the
half-precision scales, which are finite and cover zeros, denormals and the largest value.
"""

import json
import pathlib

import gguf
import numpy as np

# Format: (blocks, offsets of the half-precision scales in a block).
FORMATS = {
    "F32": (16, []),
    "Q4_1": (6, [0, 2]),
    "Q5_0": (6, [0]),
    "Q8_0": (6, [0]),
    "Q4_K": (3, [0, 2]),
    "Q6_K": (3, [208]),
    "F16": (16, []),
    "BF16": (16, []),
    "Q4_0": (6, [0]),
    "Q5_1": (6, [0, 2]),
    "Q5_K": (3, [0, 2]),
}
SCALES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0xFBFF, 0x3C00]


def blocks(name: str, rng: np.random.Generator) -> np.ndarray:
    count, scales = FORMATS[name]
    kind = gguf.GGMLQuantizationType[name]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    if not scales:
        numbers = rng.standard_normal((count, 1), np.float32)
        packed: np.ndarray = gguf.quantize(numbers, kind)
        return packed.view(np.uint8).reshape(count, size)
    raw = rng.integers(0, 256, (count, size), np.uint8)
    for at in scales:
        halves = (
            rng.integers(0, 0x7C00, count, np.uint16) | rng.integers(0, 2, count, np.uint16) << 15
        )
        # Half of the blocks have extreme scales, and the first has extreme codes as well.
        halves[: count // 2] = rng.choice(SCALES, count // 2)
        raw[:, at : at + 2] = halves.astype("<u2").view(np.uint8).reshape(count, 2)
    kept = raw[0, scales[0] : scales[0] + 2].copy()
    raw[0] = np.where(np.arange(size) % 2 == 0, 0x80, 0x7F)
    for at in scales:
        raw[0, at : at + 2] = kept
    return raw


def main() -> None:
    rng = np.random.default_rng(20)
    cases = []
    for name in FORMATS:
        raw = blocks(name, rng)
        values = gguf.dequantize(raw, gguf.GGMLQuantizationType[name]).astype("<f4")
        cases.append({"format": name, "raw": raw.tobytes().hex(), "values": values.tobytes().hex()})
    path = pathlib.Path(__file__).parents[1] / "tests" / "vectors" / "dequantise.json"
    path.write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
