"""Checks of single parameters: each returns the value in its final type or raises `ConfigError`.

numpy scalars count as numbers, booleans never do, NaN never passes.
"""

from __future__ import annotations

import difflib
import math
import numbers
import operator
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction

from specdec_rs._shown import shown
from specdec_rs.errors import ConfigError

# Ids and seeds end up in unsigned words of the engine.
U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1


def wrong(name: str, value: object, expected: str) -> ConfigError:
    """The error for a bad `value`: what was found, what is expected."""
    return ConfigError(
        f"{name}: found {shown(value)} ({type(value).__name__}), expected {expected}"
    )


def _bounds(kind: str, low: float | None, high: float | None, *, open_low: bool = False) -> str:
    parts = [kind]
    if low is not None:
        parts.append(f"{'above' if open_low else 'of at least'} {low}")
    if high is not None:
        parts.append(f"{'and ' if low is not None else ''}at most {high}")
    return " ".join(parts)


def integer(name: str, value: object, low: int | None = None, high: int | None = None) -> int:
    """A whole number in `low..=high`."""
    expected = _bounds("a whole number", low, high)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise wrong(name, value, expected)
    found = operator.index(value)
    if (low is not None and found < low) or (high is not None and found > high):
        raise wrong(name, value, expected)
    return found


_UNITS = {
    "B": 1,
    **{f"{prefix}iB": 1 << 10 * (i + 1) for i, prefix in enumerate("KMGT")},
    **{f"{prefix}B": 10 ** (3 * (i + 1)) for i, prefix in enumerate("kMGT")},
}


def size(name: str, value: object) -> int:
    """A number of bytes above 0, or a text such as "4GiB" or "1.5 GB"."""
    expected = 'a number of bytes, or a text such as "4GiB" or "800 MB"'
    if not isinstance(value, str):
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise wrong(name, value, expected)
        found = operator.index(value)
    else:
        # Python reads no whole number of more than 4,300 digits.
        match = re.fullmatch(r"([0-9]{1,99}(?:\.[0-9]{1,99})?) *([kKMGT]?i?B)", value.strip())
        unit = _UNITS.get(match[2].replace("KB", "kB")) if match else None
        if match is None or unit is None:
            raise wrong(name, value, expected)
        found = int(Fraction(match[1]) * unit)
    if not 0 < found <= U64_MAX:
        raise wrong(name, value, expected)
    return found


def number(
    name: str,
    value: object,
    low: float | None = None,
    high: float | None = None,
    *,
    open_low: bool = False,
) -> float:
    """A finite number in `low..=high`, or in `(low, high]` when `open_low`."""
    expected = _bounds("a finite number", low, high, open_low=open_low)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong(name, value, expected)
    try:
        found = float(value)
    except OverflowError:
        raise wrong(name, value, expected) from None
    too_low = low is not None and (found <= low if open_low else found < low)
    if not math.isfinite(found) or too_low or (high is not None and found > high):
        raise wrong(name, value, expected)
    return found


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise wrong(name, value, "True or False")
    return value


def text(name: str, value: object) -> str:
    """A string with something in it."""
    if not isinstance(value, str) or not value:
        raise wrong(name, value, "a string that is not empty")
    return unicode(name, value)


def choice(name: str, value: object, allowed: Iterable[str]) -> str:
    """One of the strings `allowed`; the error suggests the nearest one."""
    allowed = list(allowed)
    if not isinstance(value, str) or value not in allowed:
        hint = near(value, allowed) if isinstance(value, str) else ""
        raise wrong(name, value, "one of " + ", ".join(map(repr, allowed)) + hint)
    return value


def sequence(name: str, value: object, of: str) -> tuple[object, ...]:
    """The items of a list, tuple or other iterable that is neither a string nor a mapping."""
    return items(name, value, f"a list of {of}")


def items(name: str, value: object, expected: str) -> tuple[object, ...]:
    """As `sequence`, with the whole expectation in the caller's words."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise wrong(name, value, expected)
    try:
        found = iter(value)
    except TypeError:  # an array without dimensions, or a class
        raise wrong(name, value, expected) from None
    return tuple(found)


def strings(name: str, value: object) -> tuple[str, ...]:
    """A string or a list of strings, none empty, as a tuple."""
    if isinstance(value, str):
        return (text(name, value),)
    found = sequence(name, value, "strings")
    return tuple(text(f"{name}[{i}]", item) for i, item in enumerate(found))


def token_ids(name: str, value: object) -> tuple[int, ...]:
    """A list of token ids as a tuple."""
    found = sequence(name, value, "token ids")
    return tuple(integer(f"{name}[{i}]", item, 0, U32_MAX) for i, item in enumerate(found))


def known_names(what: str, found: Iterable[object], allowed: Iterable[str]) -> None:
    """Every one of `found` is in `allowed`; the error names the nearest one."""
    allowed = list(allowed)
    for name in found:
        if name not in allowed:
            hint = near(name, allowed) if isinstance(name, str) else ""
            raise ConfigError(
                f"{what} has no parameter {shown(name)}{hint}; known ones are {', '.join(allowed)}"
            )


# What other libraries call parameters that are here too.
_ELSEWHERE = {
    "max_new_tokens": "max_tokens",
    "n_predict": "max_tokens",
    "min_new_tokens": "min_tokens",
    "stop_strings": "stop",
    "do_sample": "temperature",
    "repeat_penalty": "repetition_penalty",
    "bad_words_ids": "bad_words",
    "num_return_sequences": "n",
}


def near(name: str, allowed: Iterable[str]) -> str:
    """A suggestion for a misspelt name or one of other libraries, or nothing."""
    allowed = list(allowed)
    own = _ELSEWHERE.get(name)
    best = [own] if own in allowed else difflib.get_close_matches(name.lower(), allowed, n=1)
    return f" (did you mean {best[0]!r}?)" if best else ""


def unicode(name: str, value: object) -> str:
    """A string, possibly empty, that can be written as UTF-8."""
    if not isinstance(value, str):
        raise wrong(name, value, "a string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{name}: character {error.start} is a lone surrogate, which is no text; decode bytes "
            "with errors='replace'"
        ) from None
    return value
