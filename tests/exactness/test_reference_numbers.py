"""Philox, the numbers made of it, and the two families of draws."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from specdec_rs.reference import Law, Tree, exact, sample
from specdec_rs.reference.chances import Coupled, Draw, Independent, Purpose, invert
from specdec_rs.reference.enumerator import Text
from specdec_rs.reference.rng import philox, seed_words, uniform
from specdec_rs.reference.tree import draw_tree
from specdec_rs.reference.verify import matching, standard
from tests.exactness.golden import P, Q
from tests.exactness.toys import Toy

VECTORS = Path(__file__).parent.parent / "vectors"
CONTEXT = Draw(Purpose.TARGET, None)


def test_philox_known_answers() -> None:
    vectors = json.loads((VECTORS / "philox.json").read_text())
    for case in vectors["blocks"]:
        counter, key, output = (
            tuple(int(word, 16) for word in case[name]) for name in ("counter", "key", "output")
        )
        assert philox(counter, key) == output  # type: ignore[arg-type]
    for case in vectors["uniforms"]:
        u = uniform(int(case["low"], 16), int(case["high"], 16))
        assert 0 < u < 1
        assert u * 2**53 == case["odd"]


def test_seeds() -> None:
    assert seed_words(0x0123456789ABCDEF) == (0x89ABCDEF, 0x01234567)
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match="seed is"):
            seed_words(seed)


def test_no_counter_serves_two_draws() -> None:
    draws = [
        Draw(purpose, node, i) for purpose in Purpose for node in (None, 0, 1, 2) for i in range(3)
    ]
    counters = [
        Independent(0, committed, index).counter(at)
        for committed in range(4)
        for index in range(2)
        for at in draws
    ]
    counters += [
        Coupled(0, index).counter(position, pair)
        for position in (*range(4), 2**32)
        for index in range(2)
        for pair in range(3)
    ]
    assert len(set(counters)) == len(counters)


def test_inversion_takes_the_first_token_whose_mass_exceeds_u() -> None:
    law = exact([0, 1, 0, 2, 1])
    assert [invert(u, law) for u in (0.0, 0.2499, 0.25, 0.7499, 0.75, 0.9999)] == [1, 1, 3, 3, 4, 4]
    assert invert(1 - 2.0**-53, [0.1] * 9 + [0.1 - 1e-9, 0.0]) == 9


@dataclass(frozen=True)
class Grid(Independent):
    """Numbers given beforehand, by purpose."""

    numbers: tuple[tuple[Purpose, float], ...] = ()

    def number(self, at: Draw) -> float:
        return dict(self.numbers)[at.purpose]


@pytest.mark.parametrize("p", [(0.5, 0.5, 0.0), (0.5, 0.25, 0.25), (0.25, 0.25, 0.5)])
def test_floats_on_the_midpoint_grid_give_exact_counts(p: Law) -> None:
    """With dyadic laws nothing is rounded, so each of 16^3 points counts the same."""
    q = (0.25, 0.25, 0.5)
    midpoints = [(k + 0.5) / 16 for k in range(16)]
    emitted: Counter[int] = Counter()
    for us in product(midpoints, repeat=3):
        purposes = (Purpose.DRAFT, Purpose.ACCEPT, Purpose.RESIDUAL)
        numbers = Grid(0, 0, 0, tuple(zip(purposes, us, strict=True)))
        tree = draw_tree(lambda _: q, 1, 1, position=0, draws=numbers)
        x = tree.nodes[0].token
        if numbers.accept(Draw(Purpose.ACCEPT, 0), p[x], q[x]):
            emitted[x] += 1
        else:
            emitted[standard.verify(tree, lambda _: p, 0, numbers).next] += 1
    assert [emitted[token] / 16**3 for token in range(3)] == list(p)


def test_the_race_has_the_law_and_ranks_without_replacement() -> None:
    seeds = range(8000)
    ranked = Counter(tuple(Coupled(seed).ranking(3, Q)[:2]) for seed in seeds)
    for first, second in ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)):
        expected = Q[first] * Q[second] / (1 - Q[first])
        sigma = math.sqrt(expected * (1 - expected) / len(seeds))
        assert abs(ranked[first, second] / len(seeds) - expected) < 5 * sigma


def test_the_race_ignores_impossible_tokens_and_is_stable() -> None:
    assert Coupled(1).ranking(0, exact([0, 1, 0, 1])) in ([1, 3], [3, 1])
    assert sample(P, seed=1, position=0) == Coupled(1).draw(CONTEXT, 0, P)
    assert sample(P, seed=1, position=5) == Coupled(1).draw(CONTEXT, 5, P)
    # A token that is taken away does not change the order of the others.
    order = Coupled(2).ranking(7, exact([3, 1, 2, 5]))
    assert Coupled(2).ranking(7, exact([3, 0, 2, 5])) == [x for x in order if x != 1]


Grow = Callable[[Toy, Text, Coupled], Tree]


def coupled_tree(children: int, depth: int) -> Grow:
    """Drafts from the draft's laws with the noise that the target will use."""

    def grow(toy: Toy, text: Text, noise: Coupled) -> Tree:
        def q_at(path: Sequence[int]) -> Law:
            return toy.draft((*text, *path))

        return draw_tree(q_at, children, depth, position=len(text), draws=noise)

    return grow


def lookup(toy: Toy, text: Text, noise: Coupled) -> Tree:
    """The last tokens again, as a rule without a model would draft them."""
    del noise
    tree = Tree()
    parent = None
    for token in text[-2:]:
        parent = tree.push_deterministic(parent, token, toy.vocab)
    return tree


def generate(toy: Toy, seed: int, grow: Grow, length: int) -> tuple[Text, int]:
    """A text by rounds of `coupled`, and the number of rounds."""
    noise, count = Coupled(seed), 0
    text: Text = ()
    while len(text) < length:
        tree = grow(toy, text, noise)

        def p_at(node: int | None, text: Text = text, tree: Tree = tree) -> Law:
            return toy.target((*text, *tree.tokens(tree.path_to(node))))

        text += matching.verify(tree, p_at, len(text), noise).tokens(tree)
        count += 1
    return text[:length], count


def test_a_seeded_text_is_the_same_with_every_draft_and_without() -> None:
    drafts = [
        coupled_tree(1, 1),
        coupled_tree(1, 3),
        coupled_tree(2, 2),
        coupled_tree(3, 1),
        lookup,
    ]
    saved = 0
    for seed in range(40):
        toy = Toy(seed, 3)
        plain, rounds = generate(toy, seed, lambda *_: Tree(), 6)
        assert rounds == 6
        for grow in drafts:
            text, fewer = generate(toy, seed, grow, 6)
            assert text == plain
            saved += rounds - fewer
    assert saved > 0
