"""The manylinux wheel, as a user gets it: pip, a clean environment, no Rust, not in the tree."""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from pathlib import Path

import pytest
from tests.scripts import ROOT, output

# glibc's versions that the library asks for stand in it as names.
OLDEST = (2, 28)

USE = """
import json, sys
import specdec_rs
from specdec_rs import LLM, SamplingParams
params = SamplingParams(temperature=0, max_tokens=16)
texts = {}
for config in (None, "auto"):
    with LLM(sys.argv[1], max_model_len=512, speculative_config=config) as llm:
        texts[str(config)] = llm.generate("One, two, one, two, one,", params)[0].outputs[0].text
print(json.dumps({"file": specdec_rs.__file__, "texts": texts, "built": specdec_rs.build_info()}))
"""


@pytest.fixture(scope="module")
def wheel() -> Path:
    (found,) = (ROOT / "dist" / "manylinux").glob("specdec_rs-*.whl")
    return found


def test_it_asks_for_no_newer_system(wheel: Path) -> None:
    assert f"manylinux_{OLDEST[0]}_{OLDEST[1]}_x86_64" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        (library,) = (name for name in archive.namelist() if name.endswith(".so"))
        asked = archive.read(library)
    versions = [tuple(map(int, v.split(b"."))) for v in re.findall(rb"GLIBC_(\d+\.\d+)", asked)]
    assert versions
    assert max(versions) <= OLDEST


def test_it_runs_where_nothing_else_is(wheel: Path, smollm2: Path, tmp_path: Path) -> None:
    clean = tmp_path / "clean" / "bin"
    # The only programs are those of the new environment, so there is neither cargo nor a compiler.
    hidden = ("PATH", "PYTHONPATH", "VIRTUAL_ENV")
    bare = {name: value for name, value in os.environ.items() if name not in hidden}

    def run(*command: str | Path) -> str:
        return output(*command, cwd=tmp_path, env={**bare, "PATH": str(clean)})

    run(Path(sys.base_prefix) / "bin" / "python3", "-m", "venv", clean.parent)
    run(clean / "python", "-m", "pip", "install", "--quiet", wheel)
    told = json.loads(run(clean / "python", "-W", "error", "-c", USE, smollm2))
    assert Path(told["file"]).is_relative_to(tmp_path)
    assert told["texts"]["None"] == told["texts"]["auto"] != ""
    shown = json.loads(run(clean / "specdec", "env", "--json"))
    assert shown["specdec_rs"] == told["built"]
