"""The committed renderings are what Jinja2 says today."""

from __future__ import annotations

import json

from templates import FILE, vectors


def test_committed_texts_are_jinja2s() -> None:
    assert vectors() == json.loads(FILE.read_text())
