"""Toy models with exact laws, and drafts of every shape, all made from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from specdec_rs.reference import Law, Outcome, Tree, exact
from specdec_rs.reference.chances import Chances, Draw, Purpose
from specdec_rs.reference.enumerator import Branches, Text
from specdec_rs.reference.law import keep_min_p, keep_top_k, keep_top_p, one_hot, without
from specdec_rs.reference.rng import philox, seed_words
from specdec_rs.reference.verify import LawAt, block, standard

Verifier = Callable[[Tree, LawAt, int, Chances], Outcome]

TARGET, DRAFT, SHAPE, INSTANCE = range(1, 5)


def standard_chain(tree: Tree, p_at: LawAt, position: int, chances: Chances) -> Outcome:
    """`standard` for a tree with one path, by its own function for chains."""
    return standard.verify_chain(*_rows(tree, p_at), position, chances)


def block_chain(tree: Tree, p_at: LawAt, position: int, chances: Chances) -> Outcome:
    """`block`, which is for such trees only."""
    return block.verify_chain(*_rows(tree, p_at), position, chances)


def _rows(tree: Tree, p_at: LawAt) -> tuple[list[Law], list[Law], list[int]]:
    """Target rows, draft rows and tokens of a tree with one path."""
    nodes = range(len(tree.nodes))
    p = [p_at(None), *(p_at(i) for i in nodes)]
    return p, [node.q for node in tree.nodes], tree.tokens(nodes)


class Words:
    """An endless stream of numbers, decided by (seed, label, tokens)."""

    def __init__(self, seed: int, label: int, tokens: Sequence[int] = ()) -> None:
        self._words = self._stream(seed, label, tokens)

    @staticmethod
    def _stream(seed: int, label: int, tokens: Sequence[int]) -> Iterator[int]:
        key = seed_words(seed)
        state = philox((label, len(tokens), 0, 0), key)
        for token in tokens:
            state = philox((state[0], state[1], token, state[3]), key)
        for i in range(2**32):
            yield from philox((state[0], state[1], state[2], i), key)

    def below(self, n: int) -> int:
        """A number of 0..n-1."""
        return next(self._words) % n

    def once_in(self, n: int) -> bool:
        return self.below(n) == 0


def random_law(words: Words, vocab: int) -> tuple[Fraction, ...]:
    """Small integer weights: zeros, ties and certain tokens among them."""
    if words.once_in(6):
        return one_hot(words.below(vocab), vocab)
    weights = [0 if words.once_in(4) else 1 + words.below(5) for _ in range(vocab)]
    if not any(weights):
        weights[words.below(vocab)] = 1
    return exact(weights)


@dataclass(frozen=True)
class Toy:
    """A target and a draft whose laws depend on the whole text before."""

    seed: int
    vocab: int
    stateful: bool = False

    def target(self, text: Text) -> Law:
        return _target(self, text)

    def draft(self, text: Text) -> Law:
        return _draft(self, text)


@cache
def _target(toy: Toy, text: Text) -> Law:
    law: Law = random_law(Words(toy.seed, TARGET, text), toy.vocab)
    return processed(toy, text, law) if toy.stateful else law


@cache
def _draft(toy: Toy, text: Text) -> Law:
    """The target's own law, or what the target rules out, or something unrelated."""
    target = toy.target(text)
    words = Words(toy.seed, DRAFT, text)
    kind = words.below(6)
    if kind == 0:
        return target
    if kind == 1 and not all(target):
        return exact([int(p == 0) for p in target])
    return random_law(words, toy.vocab)


def processed(toy: Toy, text: Text, law: Law) -> Law:
    """`law` under a penalty for repetition, a grammar and one of the cuts, as exact fractions.

    A presence penalty of ln 2 halves a weight, a frequency penalty of ln 3 divides it by 3 for
    each occurrence. The grammar allows token 0 only after an even number of tokens 1.
    """
    words = Words(toy.seed, SHAPE)
    halved, grammar, cut = words.once_in(2), words.once_in(2), words.below(4)
    weights = [Fraction(p) for p in law]
    for token in set(text):
        weights[token] /= 2 if halved else 3 ** text.count(token)
    if grammar and text.count(1) % 2 == 1 and any(weights[1:]):
        weights[0] = Fraction(0)
    law = exact(weights)
    if cut == 1:
        return keep_top_k(law, 1 + words.below(2))
    if cut == 2:
        return keep_top_p(law, Fraction(1 + words.below(9), 10))
    if cut == 3:
        return keep_min_p(law, Fraction(1 + words.below(9), 10))
    return law


SHAPES = (
    "drawn",
    "with replacement",
    "deterministic",
    "drawn, then deterministic",
    "deterministic, then drawn",
)


@dataclass(frozen=True)
class Plan:
    """How a toy's drafts grow; how many may depend on what was drawn, no token is dropped."""

    shape: str
    branching: int
    depth: int
    nodes: int
    cut: bool

    @classmethod
    def of(cls, seed: int, shapes: Sequence[str] = SHAPES, branching: int = 3) -> Plan:
        words = Words(seed, INSTANCE)
        return cls(
            shape=shapes[words.below(len(shapes))],
            branching=1 + words.below(branching),
            depth=1 + words.below(3),
            nodes=1 + words.below(4),
            cut=words.once_in(2),
        )

    def grow(self, toy: Toy, context: Text, chances: Chances) -> Tree:
        """A draft after `context`."""
        tree = Tree()
        open_nodes: list[int | None] = [None]
        while open_nodes:
            node = open_nodes.pop(0)
            path = tree.path_to(node)
            if len(path) < self.depth:
                self._grow_children(toy, (*context, *tree.tokens(path)), node, tree, chances)
                open_nodes.extend(tree.children(node))
        return tree

    def _grow_children(
        self, toy: Toy, text: Text, node: int | None, tree: Tree, chances: Chances
    ) -> None:
        q = toy.draft(text)
        for i in range(self.branching):
            siblings = tree.tokens(tree.children(node))
            words = Words(toy.seed, SHAPE, (*text, *siblings))
            if len(tree.nodes) >= self.nodes or (self.cut and words.once_in(4)):
                return
            if self._is_drawn(i):
                taken = () if self.shape == "with replacement" else siblings
                left = without(q, taken)
                if left is None:
                    return
                token = chances.draw(Draw(Purpose.DRAFT, node, i), len(text), left)
                tree.push(node, token, left)
            else:
                free = [token for token in range(toy.vocab) if token not in siblings]
                if not free:
                    return
                tree.push_deterministic(node, free[words.below(len(free))], toy.vocab)

    def _is_drawn(self, i: int) -> bool:
        return {
            "deterministic": False,
            "drawn, then deterministic": i == 0,
            "deterministic, then drawn": i > 0,
        }.get(self.shape, True)


def rounds(toy: Toy, plan: Plan, verifier: Verifier) -> Callable[[Text, Branches], Text]:
    """One round after a context: draft by `plan`, verify, emit."""

    def one_round(context: Text, branches: Branches) -> Text:
        tree = plan.grow(toy, context, branches)

        def p_at(node: int | None) -> Law:
            return toy.target((*context, *tree.tokens(tree.path_to(node))))

        return verifier(tree, p_at, len(context), branches).tokens(tree)

    return one_round
