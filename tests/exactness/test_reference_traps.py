"""Mistakes that have shipped elsewhere, each beside the right way, on the golden case G1.

The wrong version gives exactly the wrong law that is known for it; ours gives the target's. So each
test documents a trap, and shows that enumeration catches it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

from specdec_rs.reference import Law, Tree, exact, verify_chain
from specdec_rs.reference.bounds import chain_acceptance
from specdec_rs.reference.chances import Chances, Coupled, Draw, Draws, Independent, Purpose, invert
from specdec_rs.reference.enumerator import Branches, enumerate_outcomes
from specdec_rs.reference.law import (
    ZERO,
    argmax,
    keep_top_k,
    normalise,
    one_hot,
    surplus,
    total_variation,
    without,
)
from specdec_rs.reference.processors import softmax
from specdec_rs.reference.tree import chain
from specdec_rs.reference.verify import matching, standard, traversal
from tests.exactness.golden import P, Q

Child = tuple[int, Law]


def law_of(emit: Callable[[Branches], int], size: int = 3) -> tuple[Fraction, ...]:
    """The law of the token that `emit` returns."""
    law = enumerate_outcomes(emit)
    return tuple(law.get(token, ZERO) for token in range(size))


def draw(law: Law, chances: Draws, i: int = 0) -> int:
    """Draft number i, from `law`."""
    return chances.draw(Draw(Purpose.DRAFT, None, i), 0, law)


def draw_two(q: Law, chances: Chances) -> tuple[int, int]:
    """Two drafts without replacement."""
    first = draw(q, chances)
    return first, draw(left_of(q, first), chances, 1)


def left_of(q: Law, *taken: int) -> Law:
    left = without(q, taken)
    assert left is not None
    return left


def emit(children: Sequence[Child], chances: Chances, p: Law = P) -> tuple[int, bool]:
    """The token emitted and whether it was accepted, when children are tried in this order and
    each is tested as if drawn from the law beside it.
    """
    rest = p
    for i, (x, q) in enumerate(children):
        if chances.accept(Draw(Purpose.ACCEPT, i), rest[x], q[x]):
            return x, True
        left, mass = surplus(rest, q)
        rest = normalise(left) if mass > 0 else rest
    return chances.draw(Draw(Purpose.RESIDUAL, None), 0, rest), False


def test_t1_arg_max_draft_scored_with_a_soft_law() -> None:
    best = argmax(Q)
    assert law_of(lambda b: emit([(best, Q)], b)[0]) == exact([3, 1, 2])
    assert law_of(lambda b: emit([(best, one_hot(best, 3))], b)[0]) == P


def test_t2_residual_through_a_softmax() -> None:
    left, mass = surplus(P, Q)
    soft = normalise([math.exp(x) for x in normalise(left)])
    wrong = [min(p, q) + mass * s for p, q, s in zip(P, Q, soft, strict=True)]
    assert wrong == pytest.approx((0.3924, 0.3167, 0.2909), abs=5e-5)
    assert normalise(left) == exact([3, 1, 0])


def test_t3_draft_and_residual_share_their_noise() -> None:
    # The draft is 2 when it arrives first, E2 / .6 < E0 / .2, E1 / .2. Given that, E0 = s + E0'
    # and E1 = s + E1' with s = E2 / 3 of rate 5; the residual (3/4, 1/4, 0) then picks 1 if
    # E0 > 3 E1, that is E0' > 2 s + 3 E1', with probability 5/7 * 1/4.
    picks_1 = Fraction(5, 28)
    wrong = Fraction(1, 5) + Fraction(2, 5) * (1 - picks_1)
    assert float(wrong) == pytest.approx(0.529, abs=5e-4)

    def shared(seed: int) -> int:
        noise, numbers = Coupled(seed), Independent(seed, 0)
        x = draw(Q, noise)
        return x if numbers.accept(Draw(Purpose.ACCEPT, 0), P[x], Q[x]) else draw(R, noise)

    def right(seed: int) -> int:
        numbers = Independent(seed, 0)
        return emit([(draw(Q, numbers), Q)], numbers)[0]

    # norm((P - Q)+)
    R = exact([3, 1, 0])  # noqa: N806 - as in the papers
    seeds = range(12_000)
    sigma = math.sqrt(0.25 / len(seeds))
    # The wrong law is 6.3 standard deviations from the right one.
    assert abs(sum(shared(seed) == 0 for seed in seeds) / len(seeds) - wrong) < 3 * sigma
    assert abs(sum(right(seed) == 0 for seed in seeds) / len(seeds) - P[0]) < 3 * sigma


def test_t4_drawn_without_and_verified_with_replacement() -> None:
    def wrong(branches: Branches) -> tuple[int, bool]:
        return emit([(x, Q) for x in draw_two(Q, branches)], branches)

    def right(branches: Branches) -> int:
        a, b = draw_two(Q, branches)
        return emit([(a, Q), (b, left_of(Q, a))], branches)[0]

    assert law_of(lambda b: wrong(b)[0]) == exact([2, 2, 1])
    assert enumerate_outcomes(lambda b: wrong(b)[1]) == {True: 1}
    assert law_of(right) == P


def test_t5_drawn_with_and_verified_without_replacement() -> None:
    def wrong(branches: Branches) -> int:
        a, b = draw(Q, branches), draw(Q, branches, 1)
        return emit([(a, Q), (b, left_of(Q, a))], branches)[0]

    def right(branches: Branches) -> int:
        return emit([(draw(Q, branches, i), Q) for i in range(2)], branches)[0]

    assert law_of(wrong) == exact([14, 6, 5])
    assert law_of(right) == P


def test_t6_a_drawn_token_is_dropped_for_its_probability() -> None:
    def wrong(branches: Branches) -> int:
        x = draw(Q, branches)
        return emit([(x, Q)] if Q[x] >= Fraction(3, 10) else [], branches)[0]

    def right(branches: Branches) -> int:
        """The token stays; its probability only decides whether a second one is drawn."""
        x = draw(Q, branches)
        if Q[x] >= Fraction(3, 10):
            return emit([(x, Q)], branches)[0]
        left = left_of(Q, x)
        return emit([(x, Q), (draw(left, branches, 1), left)], branches)[0]

    assert law_of(wrong) == exact([25, 11, 14])
    assert law_of(right) == P


def test_t7_drafts_are_pruned_after_the_draw() -> None:
    def wrong(branches: Branches) -> int:
        return emit([(max(draw_two(Q, branches), key=lambda x: Q[x]), Q)], branches)[0]

    assert law_of(wrong) == exact([5, 2, 3])


def test_t8_siblings_are_sorted_by_their_probability() -> None:
    def wrong(branches: Branches) -> int:
        a, b = sorted(draw_two(Q, branches), key=lambda x: -Q[x])
        return emit([(a, Q), (b, left_of(Q, a))], branches)[0]

    assert law_of(wrong) == exact([5, 2, 3])


def test_t9_a_sample_for_each_row_instead_of_each_prefix() -> None:
    # Rows ab, ac, ad, eb; the token after the context is a or e, each with probability 1/2.
    a, e, size = 0, 4, 5
    p = exact([1, 0, 0, 0, 1])
    rows = [(a, 1), (a, 2), (a, 3), (e, 1)]

    def wrong(branches: Branches) -> int:
        samples = [branches.draw(Draw(Purpose.TARGET, None, row), 0, p) for row in range(len(rows))]
        matching_rows = (row[0] for row, y in zip(rows, samples, strict=True) if row[0] == y)
        return next(matching_rows, samples[0])

    def right(branches: Branches) -> int:
        tree = Tree()
        for first, second in rows:
            node = tree.child_with(None, first)
            node = tree.push_deterministic(None, first, size) if node is None else node
            tree.push_deterministic(node, second, size)
        return matching.verify(tree, lambda _: p, 0, branches).tokens(tree)[0]

    # Three rows that begin with a have a sample each: 1 - (1/2)^3.
    assert law_of(wrong, size) == exact([7, 0, 0, 0, 1])
    assert law_of(right, size) == p


def bfloat16(x: float) -> float:
    """`x` rounded to 8 significant bits, ties to even."""
    bits: int = struct.unpack("<I", struct.pack("<f", x))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    rounded: float = struct.unpack("<f", struct.pack("<I", bits >> 16 << 16))[0]
    return rounded


def test_t10_drawn_in_half_and_scored_in_full_precision() -> None:
    logits = [10.03, 10.0, 9.97]
    rounded = [bfloat16(x) for x in logits]
    assert rounded == [10.0, 10.0, 10.0]
    full, half = (exact([Fraction(x) for x in softmax(row, 1.0)]) for row in (logits, rounded))
    wrong = law_of(lambda b: emit([(draw(half, b), full)], b)[0])
    right = law_of(lambda b: emit([(draw(half, b), half)], b)[0])
    assert total_variation(wrong, P) > Fraction(1, 200)
    assert right == P


def test_t11_drawn_from_the_top_k_and_scored_with_all() -> None:
    q = exact([1, 3, 6])
    top = keep_top_k(q, 2)

    def acceptance(scored: Law) -> Fraction:
        law = enumerate_outcomes(lambda b: emit([(draw(top, b), scored)], b)[1])
        return law.get(True, ZERO)

    assert law_of(lambda b: emit([(draw(top, b), q)], b)[0]) == exact([4, 3, 2])
    assert law_of(lambda b: emit([(draw(top, b), top)], b)[0]) == P
    # Acceptance looks better than it can be.
    assert acceptance(q) == Fraction(5, 9) > acceptance(top) == chain_acceptance(P, top)


class RejectsAll(Branches):
    """What rounding may do: even a test that cannot fail fails."""

    def accept(self, at: Draw, p: object, q: object) -> bool:  # noqa: ARG002
        return at.node is None


@pytest.mark.parametrize("verify", [standard.verify, traversal.verify])
def test_t12_no_residual_is_left(verify: Callable[..., object]) -> None:
    """p = q, so (p - q)+ is 0 everywhere: the token comes from p."""

    def run(branches: Branches) -> int:
        tree = chain([draw(P, branches)], [P])
        outcome = verify(tree, lambda _: P, 0, branches)
        return outcome.next  # type: ignore[attr-defined, no-any-return]

    law = enumerate_outcomes(run, RejectsAll())
    assert tuple(law[token] for token in range(3)) == P


def test_t12_what_earlier_siblings_have_left_is_not_forgotten() -> None:
    """The second child is drawn from what the first one left, so nothing is left of that."""
    left, _ = surplus(P, Q)
    rest = normalise(left)

    def run(branches: Branches) -> int:
        tree = Tree()
        tree.push(None, 2, Q)
        tree.push(None, draw(rest, branches), rest)
        return standard.verify(tree, lambda _: P, 0, branches).next

    law = enumerate_outcomes(run, RejectsAll())
    assert law == {0: rest[0], 1: rest[1]}


@pytest.mark.parametrize("method", ["greedy", "standard", "block", "coupled"])
def test_t13_a_row_of_nan_is_an_error(method: str) -> None:
    good, bad = [0.5, 0.3, 0.2], [math.nan] * 3
    with pytest.raises(ValueError, match="row 0 of draft_probs: weight of token 0 is nan"):
        verify_chain([good, good], [bad], [0], method=method, seed=1)
    with pytest.raises(ValueError, match="row 1 of target_probs: weight of token 0 is nan"):
        verify_chain([good, bad], [good], [0], method=method, seed=1)


class Extreme(Independent):
    """The smallest or the largest number that there is, whatever it is for."""

    u = 2.0**-53

    def number(self, at: Draw) -> float:  # noqa: ARG002
        return self.u


class Largest(Extreme):
    u = 1 - 2.0**-53


@pytest.mark.parametrize("numbers", [Extreme(0, 0), Largest(0, 0)])
def test_t14_a_token_of_probability_0_is_never_emitted(numbers: Extreme) -> None:
    p, q = (0.0, 0.25, 0.75, 0.0), (0.25, 0.25, 0.25, 0.25)
    at = Draw(Purpose.ACCEPT, 0)
    assert 0.0 * q[0] <= p[0], "with u = 0 and <= the forbidden token passes"
    assert not numbers.accept(at, p[0], q[0])
    assert numbers.accept(at, p[2], q[2])
    assert not numbers.accept(at, 0.0, 5e-324), "u * q may round to 0"
    for x in range(4):
        assert p[emit([(x, q)], numbers, p)[0]] > 0
    assert p[invert(numbers.u, p)] > 0


def test_t15_sampled_draft_scored_as_one_hot() -> None:
    def wrong(branches: Branches) -> tuple[int, bool]:
        x = draw(Q, branches)
        return emit([(x, one_hot(x, 3))], branches)

    def right(branches: Branches) -> tuple[int, bool]:
        return emit([(draw(Q, branches), Q)], branches)

    # The law is right, so only the acceptance tells.
    assert law_of(lambda b: wrong(b)[0]) == P
    assert enumerate_outcomes(lambda b: wrong(b)[1])[True] == Fraction(7, 25)
    assert law_of(lambda b: right(b)[0]) == P
    assert enumerate_outcomes(lambda b: right(b)[1])[True] == Fraction(3, 5)


def test_a_sampled_child_equal_to_a_deterministic_one_is_dropped() -> None:
    """Deterministic children first, then one from q: it must be drawn without them."""
    point = one_hot(0, 3)

    def wrong(branches: Branches) -> int:
        x = draw(Q, branches)
        return emit([(0, point)] if x == 0 else [(0, point), (x, Q)], branches)[0]

    def right(branches: Branches) -> int:
        left = left_of(Q, 0)
        return emit([(0, point), (draw(left, branches), left)], branches)[0]

    assert law_of(wrong) != P
    assert law_of(right) == P
