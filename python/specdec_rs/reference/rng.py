"""Philox4x32-10 (Salmon et al., SC 2011): random numbers as a function of a counter and a key.

Nothing is stored and nothing is advanced, so a rejected token cannot shift anyone's numbers.
"""

from __future__ import annotations

WORD = 2**32

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)

Counter = tuple[int, int, int, int]


def philox(counter: Counter, key: tuple[int, int]) -> Counter:
    """Ten rounds of Philox4x32 on four 32-bit words, with a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high_0, low_0 = divmod(_MULTIPLIERS[0] * c0, WORD)
        high_1, low_1 = divmod(_MULTIPLIERS[1] * c2, WORD)
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, low_1, high_0 ^ c3 ^ k1, low_0
        k0, k1 = (k0 + _WEYL[0]) % WORD, (k1 + _WEYL[1]) % WORD
    return c0, c1, c2, c3


def uniform(low: int, high: int) -> float:
    """A number of the open interval (0, 1) from two 32-bit words.

    The midpoint (k + 1/2) * 2^-52, k the upper 52 bits of high * 2^32 + low: never 0, never 1,
    and exact as a float.
    """
    k = (high * WORD + low) >> 12
    return (k + 0.5) * 2.0**-52


def seed_words(seed: int) -> tuple[int, int]:
    """The Philox key of a 64-bit seed: low word, high word.

    Raises:
        ValueError: a seed outside 0..2^64 - 1.
    """
    if not 0 <= seed < WORD**2:
        raise ValueError(f"seed is {seed}, expected a number in 0..2^64 - 1")
    return seed % WORD, seed // WORD
