"""Every verifier of the reference keeps the target's law: whole rounds until three tokens stand,
every branch, fractions compared with `==`.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from specdec_rs.reference import Law, Outcome, enumerate_rounds, law_of_sequence
from specdec_rs.reference.chances import Draw, Purpose
from specdec_rs.reference.enumerator import Branches, Text, enumerate_outcomes
from specdec_rs.reference.verify import kseq, matching, standard, traversal
from tests.exactness.toys import (
    SHAPES,
    Plan,
    Toy,
    Verifier,
    Words,
    block_chain,
    random_law,
    rounds,
    standard_chain,
)

LENGTH = 3


TREES: dict[str, Verifier] = {
    "matching": matching.verify,
    "standard": standard.verify,
    "traversal": traversal.verify,
}
CHAINS: dict[str, Verifier] = {"standard": standard_chain, "block": block_chain}


def check(toy: Toy, plan: Plan, verifier: Verifier) -> None:
    emitted = enumerate_rounds(rounds(toy, plan, verifier), LENGTH)
    assert emitted == law_of_sequence(toy.target, LENGTH), (toy, plan)


@pytest.mark.parametrize("method", TREES)
@pytest.mark.parametrize("shape", SHAPES)
def test_tree_verifiers_keep_the_law(method: str, shape: str) -> None:
    for seed in range(40):
        vocab = 4 if seed % 20 == 0 else 2 + seed % 2
        check(Toy(seed, vocab), Plan.of(seed, [shape]), TREES[method])


@pytest.mark.parametrize("method", CHAINS)
@pytest.mark.parametrize("shape", ["drawn", "deterministic"])
def test_chain_verifiers_keep_the_law(method: str, shape: str) -> None:
    for seed in range(100):
        vocab = 4 if seed % 20 == 0 else 2 + seed % 2
        check(Toy(seed, vocab), Plan.of(seed, [shape], branching=1), CHAINS[method])


@pytest.mark.parametrize("method", TREES)
def test_tree_verifiers_keep_a_law_with_state(method: str) -> None:
    for seed in range(50):
        check(Toy(seed, 3, stateful=True), Plan.of(seed), TREES[method])


@pytest.mark.parametrize("method", CHAINS)
def test_chain_verifiers_keep_a_law_with_state(method: str) -> None:
    for seed in range(50):
        check(Toy(seed, 3, stateful=True), Plan.of(seed, branching=1), CHAINS[method])


@pytest.mark.parametrize(
    ("chain", "tree"), [(standard_chain, standard.verify), (block_chain, traversal.verify)]
)
def test_a_chain_is_a_tree_with_one_path(chain: Verifier, tree: Verifier) -> None:
    """The same outcomes with the same numbers, not only the same law."""
    for seed in range(60):
        toy, plan = Toy(seed, 3), Plan.of(seed, ["drawn"], branching=1)

        def both(branches: Branches, toy: Toy = toy, plan: Plan = plan) -> tuple[Outcome, Outcome]:
            drafts = plan.grow(toy, (), branches)
            numbers = Replay(branches)

            def p_at(node: int | None) -> Law:
                return toy.target(tuple(drafts.tokens(drafts.path_to(node))))

            return chain(drafts, p_at, 0, numbers), tree(drafts, p_at, 0, numbers)

        assert all(a == b for a, b in enumerate_outcomes(both))


class Replay:
    """Branches that answer the same question about the same node the same way again."""

    def __init__(self, branches: Branches) -> None:
        self._branches = branches
        self._answers: dict[object, int] = {}

    def accept(self, at: Draw, p: Fraction | float, q: Fraction | float) -> bool:
        question = ("accept", at, p, q)
        if question not in self._answers:
            self._answers[question] = self._branches.accept(at, p, q)
        return bool(self._answers[question])

    def draw(self, at: Draw, position: int, law: Law) -> int:
        question = ("draw", at, position, tuple(law))
        if question not in self._answers:
            self._answers[question] = self._branches.draw(at, position, law)
        return self._answers[question]


@pytest.mark.parametrize("drafts", [1, 2, 3])
def test_kseq_keeps_the_law_for_every_rho_that_is_large_enough(drafts: int) -> None:
    for seed in range(60):
        words = Words(seed, drafts)
        vocab = 2 + words.below(3)
        p, q = random_law(words, vocab), random_law(words, vocab)
        least = Fraction(kseq.best_rho(p, q, drafts)).limit_denominator(1000) + Fraction(1, 999)
        for rho in (least, Fraction(drafts + 1)):

            def run(branches: Branches, p: Law = p, q: Law = q, rho: Fraction = rho) -> Text:
                drawn = [branches.draw(Draw(Purpose.DRAFT, None, i), 0, q) for i in range(drafts)]
                _, token = kseq.choose(p, q, drawn, rho, position=0, chances=branches)
                return (token,)

            expected = {(token,): x for token, x in enumerate(p) if x > 0}
            assert enumerate_outcomes(run) == expected, (p, q, rho)


def test_plain_decoding_is_a_round_without_a_draft() -> None:
    toy = Toy(1, 3)
    nothing = Plan("drawn", branching=1, depth=0, nodes=0, cut=False)
    for verifier in (*TREES.values(), *CHAINS.values()):
        check(toy, nothing, verifier)
