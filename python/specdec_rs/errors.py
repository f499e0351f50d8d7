"""The exceptions of specdec_rs.

Everything raised on purpose is a `SpecdecError`. Where Python has a built-in that callers already
catch for the same mistake (`ValueError`, `FileNotFoundError`, `RuntimeError`), the class is that
too. A message says what was found, what was expected and what to do.
"""

from __future__ import annotations

from specdec_rs._shown import shown

__all__ = [
    "ClosedError",
    "ConfigError",
    "ContextLengthError",
    "DiskFullError",
    "DownloadError",
    "EngineDeadError",
    "FetchError",
    "ForkError",
    "HashMismatchError",
    "LogitsError",
    "MemoryBudgetError",
    "ModelLoadError",
    "ModelNotFoundError",
    "NotSupportedYetError",
    "PipMissingError",
    "QueueFullError",
    "ReentryError",
    "RequestAborted",
    "SpecdecError",
]


class SpecdecError(Exception):
    """Base of every exception that this package raises on purpose."""


class ConfigError(SpecdecError, ValueError):
    """A parameter has a wrong type, name or value; raised before any model is touched."""


class NotSupportedYetError(ConfigError):
    """A parameter that is part of the interface but that this version cannot honour.

    Raised instead of ignoring the parameter: a result without it would be a wrong answer.

    Attributes:
        field: name of the parameter.
        value: what was asked for.
    """

    def __init__(self, field: str, value: object, hint: str) -> None:
        super().__init__(f"{field}={shown(value)} is not yet supported; {hint}")
        self.field = field
        self.value = value
        self._hint = hint

    def __reduce__(self) -> tuple[type[NotSupportedYetError], tuple[str, object, str]]:
        return type(self), (self.field, self.value, self._hint)


class ModelLoadError(SpecdecError, RuntimeError):
    """A model was found but cannot be used: damaged file, unknown architecture, no memory."""


class ModelNotFoundError(ModelLoadError, FileNotFoundError):
    """Nothing at that path, no catalogue entry of that name, or no model file in that folder."""


class MemoryBudgetError(ModelLoadError, MemoryError):
    """`memory_budget` cannot hold the model; raised before a weight is read."""


class FetchError(ModelLoadError):
    """A model could not be brought into the cache; nothing half-written is left under its name."""


class PipMissingError(FetchError):
    """This Python has no pip, which `fetch` uses to reach the package registry."""


class DownloadError(FetchError):
    """The registry or the model hub could not be reached, or does not hold what was asked for."""


class HashMismatchError(FetchError):
    """What was downloaded is not the file that the catalogue names."""


class DiskFullError(FetchError):
    """The cache folder's disk cannot hold the model."""


class ContextLengthError(SpecdecError, ValueError):
    """A prompt is empty, or leaves no room for an answer in the model's context."""


class LogitsError(SpecdecError, ArithmeticError):
    """The model computed NaN or infinity: its weights are damaged, or the prompt overflows it."""


class QueueFullError(SpecdecError, RuntimeError):
    """The engine has as many waiting requests as it accepts; try again later."""


class ReentryError(SpecdecError, ValueError):
    """A signal handler asked a stream for a chunk within a call that waits for its next one."""


class RequestAborted(SpecdecError):  # noqa: N818 - vLLM's word; an abort is the caller's own wish
    """The request was cancelled before it finished."""


class EngineDeadError(SpecdecError, RuntimeError):
    """The engine stopped after an internal fault; this object cannot be used any more."""


class ClosedError(SpecdecError, RuntimeError):
    """The engine was closed; make a new one."""


class ForkError(SpecdecError, RuntimeError):
    """The engine was made in a parent process and its threads did not survive the fork.

    Make the engine in the process that uses it; with `multiprocessing`, use the `spawn` method.
    """
