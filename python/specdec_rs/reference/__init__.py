"""The law of specdec_rs and all verifiers in slow, obvious Python: what the fast code must equal.

    law          a distribution over tokens, and the cuts that samplers make
    processors   a row of logits -> the law of the next token
    rng          Philox4x32-10
    chances      where randomness comes from: keyed numbers
    tree         the drafted tokens, each with the law it was drawn from
    verify       the verifiers, one theorem a file
    bounds       how much of a draft can be accepted
    formulas     tokens per step and speed-up
    enumerator   the exact law of code that draws at random
    primitives   the verifiers on rows and a seed, as `specdec_rs.numpy` has them

Standard library only. Laws of `fractions.Fraction` give exact results, laws of floats the usual
ones. Bad input raises `ValueError`.
"""

from __future__ import annotations

from .enumerator import enumerate_outcomes, enumerate_rounds, law_of_sequence
from .formulas import expected_tokens, speedup
from .law import Law, exact
from .primitives import Verified, sample, verify_chain, verify_tree
from .processors import Sampling, process_logits
from .tree import Node, Tree
from .verify import Outcome

__all__ = [
    "Law",
    "Node",
    "Outcome",
    "Sampling",
    "Tree",
    "Verified",
    "enumerate_outcomes",
    "enumerate_rounds",
    "exact",
    "expected_tokens",
    "law_of_sequence",
    "process_logits",
    "sample",
    "speedup",
    "verify_chain",
    "verify_tree",
]
