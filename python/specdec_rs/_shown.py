"""Values in the words of an error: short, and without an error of their own."""

from __future__ import annotations

__all__ = ["shown"]

_MOST = 80


def shown(value: object) -> str:
    """What `repr` says of a value, cut to 80 characters; its kind alone where `repr` fails.

    Python itself refuses to write whole numbers of more than 4,300 digits.
    """
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - a value's own code, which may raise anything
        if isinstance(value, int):
            return f"a whole number of {int.bit_length(value)} bits"
        return f"a value whose repr raises {type(error).__name__}"
    return text if len(text) <= _MOST else text[: _MOST - 3] + "..."
