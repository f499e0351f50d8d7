"""How the engine speculates: `SpeculativeConfig`, in vLLM's words, with trees and "auto" added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Literal

from specdec_rs import _checks as check
from specdec_rs._parameters import Check, Parameters, choice, integer, number, optional
from specdec_rs.errors import ConfigError, NotSupportedYetError

__all__ = ["SpeculativeConfig"]

METHODS = ("auto", "ngram", "suffix", "recycling", "draft_model", "medusa", "eagle", "eagle3")
_METHODS_NOW = ("auto", "ngram", "draft_model")
_REJECTION = ("auto", "standard", "block", "traversal", "coupled")

# The engine's own limit: every drafted token is a row whose logits take memory.
MAX_SPECULATIVE_TOKENS = 64


@dataclass(frozen=True, kw_only=True)
class SpeculativeConfig(Parameters):
    """Where drafts come from and how they are verified. Never changes the law of the output.

    Every value is checked here, before any model is touched; a bad one raises `ConfigError` (a
    `ValueError`), one that this version cannot honour `NotSupportedYetError`. None stands for the
    engine's own choice.

    Attributes:
        method: a source of drafts, or a list of them: "auto", "ngram", "suffix", "recycling",
            "draft_model", "medusa", "eagle", "eagle3". Today "auto" is "ngram", and "draft_model"
            beside it where there is a `model`.
        model: draft model (name, path, folder or hub id) with the vocabulary of its target.
        num_speculative_tokens: tokens drafted in a step (all nodes, when the draft is a tree).
        prompt_lookup_min: shortest suffix of the text to look up. Alone, it is also the longest.
        prompt_lookup_max: longest suffix of the text to look up. Alone, it is also the shortest.
        suffix_decoding_max_tree_depth: vLLM's meaning.
        suffix_decoding_max_cached_requests: vLLM's meaning.
        suffix_decoding_max_spec_factor: vLLM's meaning.
        suffix_decoding_min_token_prob: vLLM's meaning.
        draft_sample_method: how a draft model drafts for sampled requests: "probabilistic" draws
            from its law, which is kept whole for the ratio test; "greedy" takes its likeliest.
        rejection_sample_method: for requests without a seed: "auto", "standard" (ratio test token
            by token), "block" (chains as a whole), "traversal" (trees as a whole) or "coupled"
            (noise shared by draft and target). A request with a seed is always "coupled", so that
            its text is the same with and without speculation. "auto" is "traversal" (on chains the
            same as "block") where tokens are drawn, "standard" elsewhere.
        tree_depth: most tokens on one path of the draft tree.
        branching_factor: 1 is a chain; more is a tree of up to this many matches, and of up to
            this many tokens of a draft model on each level.
        quantization: "q4_0" or "q8_0": a draft model's weights are quantised to it at load where
            that makes them smaller; None: as the file has them.
        shortlist: number of tokens that a draft model's head scores.
        adaptive: whether the width follows the measured gain; False fixes it.
    """

    method: str | Sequence[str] = "auto"
    model: str | PathLike[str] | None = None
    num_speculative_tokens: int | None = None
    prompt_lookup_min: int | None = None
    prompt_lookup_max: int | None = None
    suffix_decoding_max_tree_depth: int | None = None
    suffix_decoding_max_cached_requests: int | None = None
    suffix_decoding_max_spec_factor: float | None = None
    suffix_decoding_min_token_prob: float | None = None
    draft_sample_method: Literal["greedy", "probabilistic"] | None = None
    rejection_sample_method: Literal["auto", "standard", "block", "traversal", "coupled"] = "auto"
    tree_depth: int | None = None
    branching_factor: int | None = None
    quantization: Literal["q4_0", "q8_0"] | None = None
    shortlist: int | None = None
    adaptive: bool | None = None

    def __post_init__(self) -> None:
        self._settle(_CHECKS)
        self._refuse_what_is_missing()
        self._settle_sources()
        # Last: it sets what was not given, and errors speak of what was.
        self._settle_lookup_window()

    def _settle_lookup_window(self) -> None:
        low, high = self.prompt_lookup_min, self.prompt_lookup_max
        if low is not None and high is not None and low > high:
            raise check.wrong("prompt_lookup_min", low, f"at most prompt_lookup_max={high}")
        # vLLM's rule when only one end is given.
        self._set("prompt_lookup_min", high if low is None else low)
        self._set("prompt_lookup_max", low if high is None else high)

    def _refuse_what_is_missing(self) -> None:
        for method in self._methods():
            if method not in _METHODS_NOW:
                raise NotSupportedYetError(
                    "method", self.method, "use 'auto', 'ngram' or 'draft_model'"
                )
        if self.adaptive:
            raise NotSupportedYetError("adaptive", True, "use None or False: the width is fixed")
        self._refuse_all_but(_SUPPORTED)

    def _settle_sources(self) -> None:
        methods = self._methods()
        if "draft_model" in methods and self.model is None:
            raise ConfigError(f"model: found None, but method={self.method!r} needs a draft model")
        if self.model is not None and not {"auto", "draft_model"} & set(methods):
            raise check.wrong("model", self.model, f"None with method={self.method!r}")
        self._refuse_without("ngram", "prompt_lookup_min", "prompt_lookup_max")
        self._refuse_without("draft_model", *_DRAFT_HINTS)
        if self.rejection_sample_method == "block" and (
            (self.branching_factor or 1) > 1 or len(self.sources) > 1
        ):
            raise check.wrong(
                "rejection_sample_method", "block", "'traversal' (or 'standard') on trees"
            )

    def _refuse_without(self, source: str, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value is not None and source not in self.sources:
                hint = _DRAFT_HINTS.get(name) if self.automatic else None
                raise check.wrong(name, value, hint or f"None with method={self.method!r}")

    def _methods(self) -> tuple[str, ...]:
        return (self.method,) if isinstance(self.method, str) else tuple(self.method)

    @property
    def sources(self) -> tuple[str, ...]:
        """What drafts: "draft_model", "ngram", or both in this order."""
        methods = set(self._methods())
        if "auto" in methods:
            methods |= {"ngram"} if self.model is None else {"draft_model", "ngram"}
        return tuple(source for source in ("draft_model", "ngram") if source in methods)

    @property
    def automatic(self) -> bool:
        """Whether the engine chooses the sources, so that it may leave a draft model out."""
        return "auto" in self._methods()

    @classmethod
    def of(cls, config: object) -> SpeculativeConfig | None:
        """The checked form of anything that `LLM(speculative_config=...)` takes.

        Args:
            config: "auto", None (speculation off), a dict of the attributes above, or a
                `SpeculativeConfig`.

        Returns:
            The checked configuration, or None for "off".

        Raises:
            ConfigError: for anything else.
        """
        if config is None or isinstance(config, cls):
            return config
        if isinstance(config, str) and config == "auto":
            return cls()
        if isinstance(config, Mapping):
            check.known_names("speculative_config", config, cls.names())
            return cls(**config)
        raise check.wrong(
            "speculative_config", config, "'auto', None (off), a dict or a SpeculativeConfig"
        )


# What "auto" would have taken, had there been a model.
_DRAFT_HINTS = {
    "draft_sample_method": "None: it is how a draft model drafts, and none is given; name one in "
    "`model`",
    "quantization": "None: it quantises a draft model, and none is given; name one in `model` "
    "(LLM(quantization=...) quantises the model itself)",
}


def _method(name: str, value: object) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return check.choice(name, value, METHODS)
    items = check.sequence(name, value, "methods")
    if not items:
        raise ConfigError("method: found an empty list; use speculative_config=None to turn it off")
    methods = tuple(check.choice(f"{name}[{i}]", item, METHODS) for i, item in enumerate(items))
    if len(set(methods)) < len(methods):
        raise check.wrong(name, value, "each method once")
    return methods


def _model(name: str, value: object) -> str:
    if not isinstance(value, (str, PathLike)):
        raise check.wrong(name, value, "a name, a path, a folder or a hub id")
    return check.text(name, fspath(value))


_COUNT = optional(integer(1, check.U32_MAX))
_TOKENS = optional(integer(1, MAX_SPECULATIVE_TOKENS))

_CHECKS: dict[str, Check] = {
    "method": _method,
    "model": optional(_model),
    "num_speculative_tokens": _TOKENS,
    "prompt_lookup_min": _COUNT,
    "prompt_lookup_max": _COUNT,
    "suffix_decoding_max_tree_depth": _COUNT,
    "suffix_decoding_max_cached_requests": optional(integer(0, check.U32_MAX)),
    "suffix_decoding_max_spec_factor": optional(number(0)),
    "suffix_decoding_min_token_prob": optional(number(0, 1)),
    "draft_sample_method": optional(choice("greedy", "probabilistic")),
    "rejection_sample_method": choice(*_REJECTION),
    "tree_depth": _TOKENS,
    "branching_factor": _TOKENS,
    "quantization": optional(choice("q4_0", "q8_0")),
    "shortlist": _COUNT,
    "adaptive": optional(check.flag),
}

# The parameters that reach the engine in this version.
_SUPPORTED = frozenset(
    {
        "method",
        "model",
        "draft_sample_method",
        "quantization",
        "num_speculative_tokens",
        "prompt_lookup_min",
        "prompt_lookup_max",
        "rejection_sample_method",
        "tree_depth",
        "branching_factor",
        "adaptive",
    }
)
