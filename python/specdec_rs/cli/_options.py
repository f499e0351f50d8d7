"""Options that several verbs share, and what is made of them."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from specdec_rs import _checks as check
from specdec_rs.cli import _show
from specdec_rs.errors import ConfigError
from specdec_rs.llm import LLM
from specdec_rs.params import SamplingParams

MaxTokens = Annotated[int, typer.Option(help="Most tokens of the answer.")]
Threads = Annotated[int | None, typer.Option(help="Threads; all allowed ones when left out.")]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the tokens of an answer are chosen; names and defaults but greedy are the library's."""

    max_tokens: MaxTokens = 256
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0
    top_k: Annotated[int, typer.Option(help="Keep this many most likely tokens; 0 is off.")] = 0
    top_p: Annotated[
        float, typer.Option(help="Keep the most likely tokens up to this mass; 1 is off.")
    ] = 1.0
    min_p: Annotated[
        float, typer.Option(help="Drop tokens below this share of the best; 0 is off.")
    ] = 0.0
    seed: Annotated[
        int | None, typer.Option(help="Same seed, same text, speculation on or off.")
    ] = None
    stop: Annotated[
        list[str] | None, typer.Option(help="Text that ends the answer; repeatable.")
    ] = None

    def params(self) -> SamplingParams:
        """The parameters of one answer."""
        return SamplingParams(**vars(self))


@dataclass(frozen=True, kw_only=True)
class Loading:
    """Which model, and how it is loaded; names and defaults are those of `LLM`."""

    model: Annotated[
        str, typer.Option("--model", "-m", help="Catalogue name, file, folder or hub id.")
    ] = "smollm2-135m"
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a hub id.")] = None
    speculative_config: Annotated[
        str, typer.Option(help='"auto", "none", or a JSON object such as {"method": "ngram"}.')
    ] = "auto"
    quantization: Annotated[
        Literal["q4_0", "q8_0"] | None,
        typer.Option(help="Make larger weights this small at load; another model, if similar."),
    ] = None
    max_model_len: Annotated[
        int | None, typer.Option(help="Most tokens of prompt and answer; the model's if left out.")
    ] = None
    memory_budget: Annotated[
        str | None, typer.Option(help='Bound for weights, caches and all, such as "4GiB".')
    ] = None
    enable_prefix_caching: Annotated[
        bool,
        typer.Option(
            "--prefix-caching/--no-prefix-caching",
            help="Keep what was read, for prompts that begin alike.",
        ),
    ] = True
    num_threads: Threads = None

    def load(self, *, chat_template: str | None = None) -> LLM:
        """The model. A verb has one request at a time, so memory is set aside for one."""
        given = {**vars(self), "speculative_config": _config(self.speculative_config)}
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", UserWarning)
            llm = LLM(**given, chat_template=chat_template, max_num_seqs=1)
        for warning in heard:
            _show.remark(f"warning: {warning.message}")
        return llm


# As they are typed in a shell.
_FORMS = """auto, none or JSON such as '{"method": "ngram"}', quoted so that it is one word"""


def _config(option: str) -> Literal["auto"] | dict[str, object] | None:
    if option == "none":
        return None
    if option == "auto":
        return "auto"
    if not option.startswith("{"):
        raise check.wrong("--speculative-config", option, _FORMS)
    try:
        config: dict[str, object] = json.loads(option)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"--speculative-config is not JSON ({error}), expected {_FORMS}"
        ) from error
    return config
