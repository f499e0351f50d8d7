"""Golden vectors: known acceptances, residuals and costs, as exact numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from specdec_rs.reference import Law, Tree, bounds, exact, expected_tokens, speedup
from specdec_rs.reference.chances import Coupled, Draw, Purpose
from specdec_rs.reference.enumerator import Branches
from specdec_rs.reference.formulas import best_gamma, operation_factor
from specdec_rs.reference.law import Number, argmax, one_hot, total_variation
from specdec_rs.reference.tree import draw_children_with_replacement
from specdec_rs.reference.verify import block, kseq, lossy, matching, standard, traversal
from tests.exactness.golden import P, Q, accepted, after_rejection, drawn, first_token, outcomes
from tests.exactness.toys import block_chain

P_SKEWED, Q_SKEWED = exact([1, 2]), exact([2, 1])


def deterministic(*tokens: int) -> Tree:
    tree = Tree()
    for token in tokens:
        tree.push_deterministic(None, token, 3)
    return tree


def with_replacement(branches: Branches) -> Tree:
    tree = Tree()
    draw_children_with_replacement(tree, None, Q, 2, position=0, draws=branches)
    return tree


def test_g1a_one_draft() -> None:
    law = outcomes(drawn(), standard.verify)
    assert (
        accepted(law)
        == Fraction(3, 5)
        == bounds.chain_acceptance(P, Q)
        == 1 - total_variation(P, Q)
    )
    assert after_rejection(law) == exact([3, 1, 0])
    assert first_token(law) == P


def test_g1b_two_children_with_replacement() -> None:
    law = outcomes(with_replacement, standard.verify)
    assert accepted(law) == Fraction(19, 25)
    assert first_token(law) == P


def test_g1c_two_children_without_replacement() -> None:
    law = outcomes(drawn(children=2), standard.verify)
    assert accepted(law) == Fraction(9, 10)
    assert first_token(law) == P


@pytest.mark.parametrize(
    ("drafts", "rho", "beta", "acceptance", "residual"),
    [
        (2, 1.46332, 0.53668, 0.78533, (0.96583, 0.03417, 0)),
        (4, 2.03004, 0.44630, 0.90601, (1, 0, 0)),
    ],
)
def test_g1d_g1e_kseq(
    drafts: int, rho: float, beta: float, acceptance: float, residual: tuple[float, ...]
) -> None:
    best = kseq.best_rho(P, Q, drafts)
    # Five decimals are given.
    assert best == pytest.approx(rho, abs=5e-6)
    assert kseq.beta(P, Q, best) == pytest.approx(beta, abs=5e-6)
    assert kseq.acceptance(P, Q, drafts, best) == pytest.approx(acceptance, abs=5e-6)
    assert kseq.residual(P, Q, drafts, best) == pytest.approx(residual, abs=5e-6)


def test_g1f_the_best_possible_for_two_drafts() -> None:
    both = bounds.independent_drafts(Q, 2)
    assert bounds.best_acceptance(P, both) == Fraction(21, 25)
    assert bounds.best_acceptance_independent(P, Q, 2) == Fraction(21, 25)
    assert bounds.best_acceptance(P, bounds.drafts_without_replacement(Q, 2)) == 1


def test_g1g_deterministic_children() -> None:
    law = outcomes(lambda _: deterministic(2, 0), standard.verify)
    assert accepted(law) == Fraction(7, 10)
    assert first_token(law) == P
    assert accepted(outcomes(lambda _: deterministic(0, 2), standard.verify)) == Fraction(7, 10)


def test_g1h_coupled_noise() -> None:
    assert bounds.coupled_acceptance(P, Q) == Fraction(49, 85)


def test_g1h_coupled_noise_as_drawn() -> None:
    draws = 4000
    at = Draw(Purpose.TARGET, None)
    hits = sum(Coupled(7).draw(at, i, P) == Coupled(7).draw(at, i, Q) for i in range(draws))
    # Five standard deviations of a sample of that size; an independent draft would give 0.28.
    assert hits / draws == pytest.approx(49 / 85, abs=5 * math.sqrt(0.25 / draws))


def test_g1i_sample_and_match() -> None:
    law = outcomes(drawn(), matching.verify)
    assert accepted(law) == Fraction(7, 25) == bounds.matching_acceptance(P, Q)
    assert first_token(law) == P
    best = outcomes(lambda _: deterministic(argmax(Q)), matching.verify)
    assert accepted(best) == Fraction(1, 5)
    assert first_token(best) == P


@pytest.mark.parametrize(
    ("gamma", "expected"), [(1, Fraction(3, 5)), (2, Fraction(24, 25)), (3, Fraction(147, 125))]
)
def test_g1j_chain_token_by_token(gamma: int, expected: str) -> None:
    law = outcomes(drawn(depth=gamma), standard.verify)
    assert accepted(law) == Fraction(expected) == expected_tokens(Fraction(3, 5), gamma) - 1


@pytest.mark.parametrize(
    ("gamma", "expected"), [(1, Fraction(3, 5)), (2, Fraction(26, 25)), (3, Fraction(689, 500))]
)
def test_g1k_chain_by_blocks(gamma: int, expected: str) -> None:
    assert accepted(outcomes(drawn(depth=gamma), block_chain)) == Fraction(expected)
    assert accepted(outcomes(drawn(depth=gamma), traversal.verify)) == Fraction(expected)


def test_g1l_tree_of_two_levels() -> None:
    grow = drawn(children=2, depth=2)
    assert accepted(outcomes(grow, standard.verify)) == Fraction(171, 100)
    assert accepted(outcomes(grow, traversal.verify)) == Fraction(87, 50)


def test_g2_token_by_token_and_by_blocks() -> None:
    grow = drawn(Q_SKEWED, depth=2)
    assert accepted(outcomes(grow, standard.verify, P_SKEWED)) == Fraction(10, 9)
    assert accepted(outcomes(grow, block_chain, P_SKEWED)) == Fraction(11, 9)


@pytest.mark.parametrize(
    ("tokens", "ratios", "h_1", "h_2"),
    [
        ((0, 0), (Fraction(1, 2), Fraction(1, 4)), 0, Fraction(1, 4)),
        ((0, 1), (Fraction(1, 2), 1), 0, 1),
        ((1, 0), (1, Fraction(1, 2)), 1, Fraction(1, 2)),
        ((1, 1), (1, 1), 1, 1),
    ],
)
def test_g2_details(
    tokens: tuple[int, int], ratios: tuple[Number, Number], h_1: Number, h_2: Number
) -> None:
    p, q = [P_SKEWED] * 3, [Q_SKEWED] * 2
    found = block.joint_ratios(p, q, tokens)
    assert (found[1], found[2]) == ratios
    assert block.accept_probability(found[1], P_SKEWED, Q_SKEWED) == h_1
    assert found[2] == h_2
    assert block.accept_probability(Fraction(1), P, P) == 1, "0 / 0 where p = q"


@pytest.mark.parametrize(
    ("law", "threshold"),
    [((0.5, 0.3, 0.2), 0.09), ((0.97, 0.02, 0.01), 0.09), ((0.01,) * 100, 0.0030)],
)
def test_g3_typical_acceptance(law: Law, threshold: float) -> None:
    assert lossy.typical_threshold(law) == pytest.approx(threshold, abs=5e-5)


def test_g3_the_flat_law_is_under_epsilon_by_its_entropy() -> None:
    assert lossy.typical_threshold((0.01,) * 100) == pytest.approx(0.3 * math.exp(-4.604), rel=1e-3)


def test_bounds_agree_and_hold() -> None:
    for seed in range(40):
        p = exact([1 + (seed * 7 + i * i) % 5 for i in range(4)])
        q = exact([(seed * 3 + i * 5) % 4 + (i == 0) for i in range(4)])
        for k in (1, 2, 3):
            best = bounds.best_acceptance(p, bounds.independent_drafts(q, k))
            assert best == bounds.best_acceptance_independent(p, q, k)
            rho = kseq.best_rho(p, q, k)
            assert kseq.acceptance(p, q, k, rho) <= best + 1e-12
        assert bounds.best_acceptance(p, bounds.independent_drafts(q, 1)) == (
            bounds.chain_acceptance(p, q)
        )
        tv = total_variation(p, q)
        assert (1 - tv) / (1 + tv) <= bounds.coupled_acceptance(p, q) <= 1 - tv


def test_coupled_acceptance_of_extremes() -> None:
    assert bounds.coupled_acceptance(P, P) == 1
    assert bounds.coupled_acceptance(one_hot(0, 3), exact([0, 1, 1])) == 0


@pytest.mark.parametrize(
    ("alpha", "cost", "gamma", "tokens", "gain"),
    [
        (0.5, 0.6, 0, 1, 1),
        (0.6, 0.05, 4, 2.3056, 1.921),
        (0.6, 0.3, 1, 1.6, 1.231),
        (0.8, 0.05, 8, 4.3289, 3.092),
        (0.8, 0.2, 4, 3.3616, 1.868),
        (0.9, 0.05, 13, 7.7123, 4.674),
    ],
)
def test_speedups(alpha: float, cost: float, gamma: int, tokens: float, gain: float) -> None:
    assert best_gamma(alpha, cost) == gamma
    assert expected_tokens(alpha, gamma) == pytest.approx(tokens, abs=5e-5)
    assert speedup(alpha, gamma, cost) == pytest.approx(gain, abs=5e-4)


def test_a_verify_cost_that_grows_with_the_width_lowers_the_best_gamma() -> None:
    flat = best_gamma(0.8, 0.05)
    steep = best_gamma(0.8, 0.05, lambda rows: 10 + 3 * (rows - 1))
    assert 0 < steep < flat
    assert best_gamma(0.8, 0.05, lambda rows: rows) == 0
    # Five rows cost twice one row: 1 + 4 * 0.05 becomes 2 + 4 * 0.05.
    doubled = speedup(0.8, 4, 0.05, lambda rows: 2.0 if rows == 5 else 1.0)
    assert doubled == pytest.approx(3.3616 / 2.2)


def test_operations_and_limits() -> None:
    assert expected_tokens(1, 3) == 4
    assert expected_tokens(0, 3) == 1
    assert operation_factor(Fraction(1, 2), 1, Fraction(1, 10)) == Fraction(21, 10) / Fraction(3, 2)
    with pytest.raises(ValueError, match=r"alpha is 1\.5"):
        expected_tokens(1.5, 3)
    with pytest.raises(ValueError, match="gamma is -1"):
        expected_tokens(0.5, -1)
