"""Groups of options that verbs share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

__all__ = ["flat"]


def flat(verb: Callable[..., None]) -> Callable[..., None]:
    """`verb` as typer has to see it: the fields of its dataclasses are options of their own.

    typer makes an option of each parameter of a function. So a parameter that is a dataclass (it
    has no default) is shown as its fields, and `verb` is given the dataclass made of them.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        verb(**given)

    shown: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        if name in groups:
            shown += _fields(groups[name])
        else:
            shown.append(_option(name, hints[name], parameter.default))
    run.__doc__ = verb.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return run


def _fields(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [_option(field.name, hints[field.name], field.default) for field in fields(group)]


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    missing = default is MISSING or default is inspect.Parameter.empty
    default = inspect.Parameter.empty if missing else default
    return inspect.Parameter(name, kind, annotation=annotation, default=default)
