"""Base of the frozen parameter classes: named, checked, and honest about what is missing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

from specdec_rs import _checks as check
from specdec_rs.errors import ConfigError, NotSupportedYetError

Check = Callable[[str, Any], object]


class _Signature:
    """Shows `help` and `inspect` the parameters, which `Parameters.__new__` would hide."""

    def __get__(self, _instance: object, owner: type) -> inspect.Signature:
        initialise = owner.__init__  # type: ignore[misc]  # of the class itself
        parameters = inspect.signature(initialise).parameters.values()
        return inspect.Signature(list(parameters)[1:])


class Parameters:
    """A frozen dataclass whose mistakes are all `ConfigError`s, unknown names included."""

    if not TYPE_CHECKING:
        __signature__ = _Signature()

        def __new__(cls, *args: object, **kwargs: object) -> Self:
            """Runs before the generated `__init__`, whose own error is an untyped `TypeError`."""
            if args:
                raise ConfigError(f"{cls.__name__} takes its parameters by name, not by position")
            check.known_names(cls.__name__, kwargs, cls.names())
            return super().__new__(cls)

    @classmethod
    def names(cls) -> list[str]:
        """Names of the parameters, in order of declaration."""
        return [field.name for field in fields(cls)]  # type: ignore[arg-type]

    def _settle(self, checks: Mapping[str, Check]) -> None:
        """Replace every value by its checked form."""
        for name in self.names():
            self._set(name, checks[name](name, getattr(self, name)))

    def _refuse_all_but(self, supported: Collection[str]) -> None:
        """Raise for the first parameter outside `supported` that is not at its default."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name not in supported and value != field.default:
                raise NotSupportedYetError(field.name, value, f"leave it at {field.default!r}")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def optional(inner: Check) -> Check:
    """`inner`, with None let through."""
    return lambda name, value: None if value is None else inner(name, value)


def integer(low: int, high: int | None = None) -> Check:
    """A whole number in `low..=high`."""
    return lambda name, value: check.integer(name, value, low, high)


def number(low: float, high: float | None = None, *, open_low: bool = False) -> Check:
    """A finite number in `low..=high`, or in `(low, high]` when `open_low`."""
    return lambda name, value: check.number(name, value, low, high, open_low=open_low)


def choice(*allowed: str) -> Check:
    """One of the strings `allowed`."""
    return lambda name, value: check.choice(name, value, allowed)
