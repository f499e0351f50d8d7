"""Walking the drafts with the target's law: which tokens stay, and which one comes next.

What every verifier here owes: whatever the drafter, the tokens it emits (the accepted ones and the
one drawn after them) have exactly the law that plain decoding gives them. One theorem a file.

    matching     draw the target's token, stay while it is drafted     chains, trees
    standard     ratio test and residual, child after child            chains, trees
    block        the longest prefix by joint ratio                     chains
    traversal    block verification from the leaves of a tree upwards  trees
    kseq         one test for k independent drafts                     one node
    lossy        typical acceptance: does not keep the law             one node
"""

from __future__ import annotations

from . import block, kseq, lossy, matching, standard, traversal
from .outcome import LawAt, Outcome

__all__ = [
    "LawAt",
    "Outcome",
    "block",
    "kseq",
    "lossy",
    "matching",
    "standard",
    "traversal",
]
