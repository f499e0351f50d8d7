"""Makes `tests/vectors/verify_*.json`, with which every implementation must agree.

python -m tests.exactness.vectors
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from specdec_rs.reference import Law, Outcome, Tree, enumerate_outcomes, exact
from specdec_rs.reference.chances import Chances, Coupled, Independent
from specdec_rs.reference.enumerator import Text
from specdec_rs.reference.law import without
from specdec_rs.reference.verify import matching, standard, traversal
from tests.exactness.toys import Toy, Verifier, Words, block_chain

DEPTH, NODES = 3, 5

FOLDER = Path(__file__).parent.parent / "vectors"

COMMON = (
    "A case is one drafted tree: node i holds tokens[i], its parent is parents[i] (-1: the"
    " context), siblings stand in drawn order; p[0] is the target's law after the context,"
    " p[i + 1] after node i; q[i] is the law that node i was drawn from before the tokens of its"
    " earlier siblings were taken out, null for a token chosen by a rule. Laws are integer weights."
)
LAW = (
    " law: the probability of every outcome (accepted nodes, next token) given this tree, over all"
    " draws of the verifier; accepted: the expected number of accepted nodes."
)
KEYED = (
    " outcomes: what comes out for the numbers of (seed, sample 0, position = committed length)."
    " Counters: [purpose << 24, node, position, sample] with node 0 for the context and i + 1 for"
    " node i, purpose 1 for the test of a node, 2 for a token of a residual, 3 for a token of the"
    " target's own law; coupled: [5 << 24 | token / 2, position, position >> 32, sample]."
)


@dataclass(frozen=True)
class Instance:
    """A drafted tree with all laws around it."""

    tokens: list[int]
    parents: list[int]
    p: list[Law]
    q: list[Law | None]

    def tree(self) -> Tree:
        tree = Tree()
        for token, parent, q in zip(self.tokens, self.parents, self.q, strict=True):
            above = None if parent < 0 else parent
            if q is None:
                tree.push_deterministic(above, token, len(self.p[0]))
            else:
                tree.push_without_replacement(above, token, q)
        return tree

    def p_at(self, node: int | None) -> Law:
        return self.p[0 if node is None else node + 1]

    def outcome(self, verifier: Verifier, chances: Chances, position: int) -> Outcome:
        return verifier(self.tree(), self.p_at, position, chances)

    def document(self) -> dict[str, Any]:
        return {
            "tokens": self.tokens,
            "parents": self.parents,
            "p": [weights(p) for p in self.p],
            "q": [q and weights(q) for q in self.q],
        }


def weights(law: Law) -> list[int]:
    """The least integers in the proportions of `law`."""
    fractions = [Fraction(x) for x in law]
    scale = math.lcm(*(x.denominator for x in fractions))
    integers = [int(x * scale) for x in fractions]
    return [x // math.gcd(*integers) for x in integers]


def instance(seed: int, *, branching: int, rule: Callable[[Words], bool]) -> Instance:
    """A tree drawn with the numbers of `seed`; `rule` says which nodes are chosen by a rule."""
    words = Words(seed, 9)
    toy = Toy(seed, 2 + words.below(3))
    made = Instance([], [], [toy.target(())], [])
    open_nodes: list[tuple[int, Text]] = [(-1, ())]
    while open_nodes:
        parent, text = open_nodes.pop(0)
        if len(text) == DEPTH:
            continue
        siblings: list[int] = []
        for _ in range(min(1 + words.below(branching), NODES - len(made.tokens))):
            by_rule = rule(words)
            q = exact([1] * toy.vocab) if by_rule else toy.draft(text)
            left = without(q, siblings)
            if left is None:
                break
            token = choose(words, left)
            siblings.append(token)
            made.tokens.append(token)
            made.parents.append(parent)
            made.q.append(None if by_rule else q)
            made.p.append(toy.target((*text, token)))
            open_nodes.append((len(made.tokens) - 1, (*text, token)))
    return made


def choose(words: Words, law: Law) -> int:
    """A token of `law`."""
    urn = [token for token, weight in enumerate(weights(law)) for _ in range(weight)]
    return urn[words.below(len(urn))]


VERIFIERS: dict[str, Verifier] = {
    "standard": standard.verify,
    "block": block_chain,
    "traversal": traversal.verify,
}
RULES: dict[str, Callable[[Words], bool]] = {
    "drawn": lambda _: False,
    "mixed": lambda words: words.once_in(2),
}


def instances(method: str, count: int) -> dict[str, Instance]:
    """Instances for a method: chains for `block`, else chains and trees.

    One in twelve may be dull (disjoint laws, p = q, certain tokens); the others have outcomes
    enough, and for `block` and `traversal` another law than `standard` gives them.
    """
    made: dict[str, Instance] = {}
    seeds = iter(range(100_000))
    for number in range(count):
        rule = list(RULES)[number % 5 % 2]
        branching = 1 if method == "block" else 1 + number % 3
        for seed in seeds:
            new = instance(seed, branching=branching, rule=RULES[rule])
            law = law_of(new, standard.verify)
            alike = method in VERIFIERS and law == law_of(new, VERIFIERS[method])
            if number % 12 == 0 or (len(law) > 4 and (method == "standard" or not alike)):
                made[f"{rule}-{seed}"] = new
                break
    return made


def enumerated(method: str) -> dict[str, Any]:
    """The document of a method that draws independently."""
    cases = []
    for name, made in instances(method, 36).items():
        law = law_of(made, VERIFIERS[method])
        accepted = sum((len(found.path) * x for found, x in law.items()), Fraction(0))
        outcomes = [
            {"path": list(found.path), "next": found.next, "probability": str(law[found])}
            for found in sorted(law)
        ]
        cases.append({"id": name, **made.document(), "law": outcomes, "accepted": str(accepted)})
    return {"about": COMMON + LAW, "method": method, "cases": cases}


def law_of(made: Instance, verifier: Verifier) -> dict[Outcome, Fraction]:
    """The probability of every outcome."""
    return enumerate_outcomes(lambda branches: made.outcome(verifier, branches, 0))


def keyed() -> dict[str, Any]:
    """The document of all methods with the numbers that production uses."""
    cases = []
    for method in ("greedy", "coupled", *VERIFIERS):
        for name, made in instances(method, 12).items():
            outcomes = [
                {"seed": seed, "position": position, **found(method, made, seed, position)}
                for seed in (0, 1, 2**64 - 1)
                for position in (0, 5, 1000)
            ]
            cases.append({"id": name, "method": method, **made.document(), "outcomes": outcomes})
    return {"about": COMMON + KEYED, "cases": cases}


def found(method: str, made: Instance, seed: int, position: int) -> dict[str, Any]:
    """The outcome of a method for the numbers of (seed, position)."""
    if method == "greedy":
        outcome = matching.verify_greedy(made.tree(), made.p_at)
    elif method == "coupled":
        outcome = matching.verify(made.tree(), made.p_at, position, Coupled(seed))
    else:
        outcome = made.outcome(VERIFIERS[method], Independent(seed, position), position)
    return {"path": list(outcome.path), "next": outcome.next}


def documents() -> dict[str, dict[str, Any]]:
    """All documents by file name."""
    made = {f"verify_{method}.json": enumerated(method) for method in VERIFIERS}
    return {**made, "verify_keyed.json": keyed()}


def to_json(document: dict[str, Any]) -> str:
    """JSON with one case a line."""
    head: Sequence[str] = [
        f"  {json.dumps(key)}: {json.dumps(value)},"
        for key, value in document.items()
        if key != "cases"
    ]
    cases = ",\n".join(f"    {json.dumps(case)}" for case in document["cases"])
    return "\n".join(["{", *head, '  "cases": [', cases, "  ]", "}", ""])


if __name__ == "__main__":
    for name, document in documents().items():
        (FOLDER / name).write_text(to_json(document))
