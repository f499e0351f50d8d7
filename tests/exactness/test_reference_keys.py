"""The numbers behind the draws: which counter they come from decides whether the law is kept.

`SharedNumbers` enumerates the uniform numbers themselves, over all rounds of a text: where a key
comes back, so does its number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction

import pytest

from specdec_rs.reference import Law, exact, law_of_sequence
from specdec_rs.reference.chances import Draw, Purpose
from specdec_rs.reference.enumerator import Branches, SharedNumbers, Text, enumerate_outcomes
from specdec_rs.reference.tree import draw_tree
from specdec_rs.reference.verify import standard, traversal
from tests.exactness.golden import P, Q
from tests.exactness.toys import Plan, Toy, Verifier, rounds

Key = Callable[[int, Draw], Hashable]


def by_committed_length(committed: int, at: Draw) -> Hashable:
    """What `Independent` does."""
    return committed, at


def by_position(committed: int, at: Draw) -> Hashable:
    """The absolute position that a draw on a chain is for, and its purpose."""
    return at.purpose, committed + (0 if at.node is None else at.node + 1)


def generated(
    key: Key, one_round: Callable[[Text, Branches], Text], length: int
) -> dict[Text, Fraction]:
    """The law of the first `length` tokens, all rounds enumerated together."""
    numbers = SharedNumbers(key)

    def run(_: Branches) -> Text:
        text: Text = ()
        while len(text) < length:
            numbers.committed = len(text)
            text += one_round(text, numbers)
        return text[:length]

    return enumerate_outcomes(run, numbers)


def chain_round(verifier: Verifier, p: Law, q: Law) -> Callable[[Text, Branches], Text]:
    """Two drafts from `q`, everywhere the same."""

    def one_round(text: Text, numbers: Branches) -> Text:
        tree = draw_tree(lambda _: q, 1, 2, position=len(text), draws=numbers)
        return verifier(tree, lambda _: p, len(text), numbers).tokens(tree)

    return one_round


@pytest.mark.parametrize("verifier", [standard.verify, traversal.verify])
def test_numbers_keyed_by_committed_length_keep_the_law(verifier: Verifier) -> None:
    for seed in range(40):
        toy, plan = Toy(seed, 2), Plan.of(seed, branching=2)
        law = generated(by_committed_length, rounds(toy, plan, verifier), 3)
        assert law == law_of_sequence(toy.target, 3), (toy, plan)


def test_numbers_keyed_by_position_bias_verifiers_that_start_at_the_leaves() -> None:
    p, q = exact([1, 2]), exact([2, 1])
    right = law_of_sequence(lambda _: p, 3)
    top_down = generated(by_position, chain_round(standard.verify, p, q), 3)
    bottom_up = generated(by_position, chain_round(traversal.verify, p, q), 3)
    assert top_down == right, "what lies beyond a rejection has not been looked at"
    distance = sum((abs(bottom_up[text] - right[text]) for text in right), Fraction(0)) / 2
    assert distance == Fraction(7, 108)


def test_a_residual_drawn_with_the_number_of_the_draft_is_biased() -> None:
    def shared(committed: int, at: Draw) -> Hashable:
        purpose = Purpose.DRAFT if at.purpose == Purpose.RESIDUAL else at.purpose
        return committed, purpose, at.node

    law = generated(shared, chain_round(standard.verify, P, Q), 1)
    assert tuple(law[token,] for token in range(3)) == exact([13, 11, 6])
    law = generated(by_committed_length, chain_round(standard.verify, P, Q), 1)
    assert tuple(law[token,] for token in range(3)) == P
