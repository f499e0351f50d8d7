"""Every snippet of README and the guides runs, and prints what its page says."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests import snippets
from tests.scripts import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GUIDES = {"first-steps", "draft-models", "sampling", "memory", "errors"}
LANGUAGES = {"python", "sh", "text"}


def test_the_guides_are_there_and_linked() -> None:
    assert {page.stem for page in PAGES} >= GUIDES
    readme = (ROOT / "README.md").read_text()
    assert all(f"(docs/{page.name})" in readme for page in PAGES if page.parent.name == "docs")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_snippets_run(page: Path, tmp_path: Path) -> None:
    found = snippets.blocks(page)
    assert {block.language for block in found} <= LANGUAGES
    code = [block for block in found if block.language == "python"]
    printed = dict(zip(code, snippets.python(page, code), strict=True))
    printed |= {block: snippets.shell(block, tmp_path) for block in found if block.language == "sh"}
    for block, below in pairwise(found):
        if below.language == "text":
            assert printed[block] == below.content, f"{page.name}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert (page.parent / link).exists(), link
