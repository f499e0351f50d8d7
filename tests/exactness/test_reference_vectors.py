"""The committed vectors are what the reference gives, and what other implementations agree on."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from specdec_rs.reference import Law, Tree, bounds, exact
from specdec_rs.reference.enumerator import Branches
from specdec_rs.reference.verify import matching, standard, traversal
from tests.exactness import vectors
from tests.exactness.golden import Verifier, accepted, after_rejection, drawn, first_token, outcomes

SHARED = json.loads((vectors.FOLDER / "verify.json").read_text())
METHODS: dict[str, Verifier] = {
    "standard": standard.verify,
    "matching": matching.verify,
    "traversal": traversal.verify,
}


def test_committed_vectors_are_those_of_the_reference() -> None:
    for name, document in vectors.documents().items():
        committed = (vectors.FOLDER / name).read_text()
        assert committed == vectors.to_json(document), "run python -m tests.exactness.vectors"


@pytest.mark.parametrize("method", vectors.VERIFIERS)
def test_vectors_visit_every_kind_of_outcome(method: str) -> None:
    cases = json.loads((vectors.FOLDER / f"verify_{method}.json").read_text())["cases"]
    lengths = Counter(len(found["path"]) for case in cases for found in case["law"])
    assert {0, 1, 2, 3} <= set(lengths)
    for case in cases:
        assert sum(Fraction(found["probability"]) for found in case["law"]) == 1


@pytest.mark.parametrize("case", SHARED["cases"], ids=lambda case: case["id"])
def test_shared_laws(case: dict[str, Any]) -> None:
    p = exact(case["p"])
    if case["draft"] == "drawn":
        grow = drawn(exact(case["q"]), case["children"], case["depth"])
    else:

        def grow(_: Branches) -> Tree:
            tree = Tree()
            for token in case["tokens"]:
                tree.push_deterministic(None, token, len(p))
            return tree

    law = outcomes(grow, METHODS[case["verifier"]], p)
    assert accepted(law) == Fraction(case["accepted"])
    assert first_token(law, len(p)) == p
    if "residual" in case:
        assert after_rejection(law, len(p)) == tuple(map(Fraction, case["residual"]))


@pytest.mark.parametrize("case", SHARED["coupled"], ids=lambda case: case["id"])
def test_shared_coupled_acceptance(case: dict[str, Any]) -> None:
    p: Law = exact(case["p"])
    assert bounds.coupled_acceptance(p, exact(case["q"])) == Fraction(case["match"])
