"""The compiled engine. Use the package's own names; this module is not an interface."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict, final

from specdec_rs.params import SamplingParams
from specdec_rs.speculative import SpeculativeConfig

__all__ = [
    "Engine",
    "ReadyQueue",
    "Request",
    "build_info",
    "machine_rates",
    "ngram",
    "pass_costs",
    "process_logits",
    "sample",
    "verify",
]

# A C-contiguous NumPy array of float16, float32 or float64 and two dimensions; uint16 stands for
# bfloat16. Not named here, because NumPy is optional.
_Rows = Any
# Ascending token ids that the columns stand for, and the size of the vocabulary.
_Columns = tuple[Sequence[int], int] | None

class _Logprobs(TypedDict):
    """One emitted token in the model's raw law: log-softmax, place, and the likeliest tokens."""

    token: int
    logprob: float
    rank: int
    top: list[tuple[int, float]]

class _SpecStats(TypedDict):
    """The fields of `SpeculativeDecodingStats`."""

    mean_acceptance_length: float
    draft_acceptance_rate: float | None
    acceptance_histogram: list[int]
    acceptance_histogram_by_draft_length: dict[int, list[int]]
    num_spec_steps: int
    num_plain_steps: int
    num_accepted_draft_tokens: int
    num_draft_tokens: int
    num_spec_tokens: int
    max_tree_depth: int
    num_draft_tokens_per_pos: list[int]
    num_accepted_tokens_per_pos: list[int]
    draft_stop_reasons: dict[str, int]

class _End(TypedDict):
    """The end of an answer; times in seconds."""

    finish_reason: Literal["stop", "length", "abort", "error"]
    stop_token: int | None
    stop_text: str | None
    queue_time: float
    time_to_first_token: float
    generation_time: float
    num_cached_tokens: int
    num_preemptions: int
    prompt_logprobs: list[_Logprobs]
    speculation: _SpecStats

class _Step(TypedDict):
    """What one step added to an answer: new text, new tokens, the first of them from a draft."""

    text: str
    token_ids: list[int]
    from_draft: int
    logprobs: list[_Logprobs]
    end: _End | None

class _Memory(TypedDict):
    """Fields of `MemoryReport`."""

    budget: int | None
    weights: int
    kv_cache: int
    activations: int
    draft_weights: int
    draft_kv_cache: int
    draft_activations: int
    kv_cache_tokens: int
    draft_kv_cache_tokens: int
    kv_tokens_lost_to_draft: int
    draft_left_out: bool

class _Metrics(TypedDict):
    """The fields of `EngineMetrics`; times in seconds."""

    num_steps: int
    num_draft_failures: int
    num_preemptions: int
    prefix_cache_queries: int
    prefix_cache_hits: int
    draft_time: float
    forward_time: float
    verify_time: float
    commit_time: float
    forward_by_rows: dict[int, tuple[int, float]]

class _Round(TypedDict):
    """Every width once, in milliseconds, and the probes in between, per second."""

    read: list[float]
    multiply: float
    ms: list[float]

class _PassCosts(TypedDict):
    """What passes do (bytes of weights and of keys and values read, products) and cost."""

    weight_bytes: int
    kv_bytes: int
    macs_per_row: int
    threads: int
    level: str
    rounds: list[_Round]

def build_info() -> dict[str, str]:
    """Version, target, whether own checks are on, instruction level and threads of this machine."""

def pass_costs(
    model: str | PathLike[str],
    *,
    context: int,
    widest: int,
    repeats: int,
    num_threads: int | None = None,
    level: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> _PassCosts:
    """Time passes of 1 to `widest` rows of a model behind `context` positions.

    Each width is timed `repeats` times, widths and probes in turns, so that a machine whose speed
    drifts drifts under all of them alike. `progress(done, total)` hears rounds.
    """

def machine_rates(
    *, num_threads: int | None = None, level: str | None = None
) -> tuple[float, float]:
    """Read bandwidth in bytes per second, byte products with addition per second: of now."""

def ngram(
    context: Sequence[int], *, prompt_lookup_min: int, prompt_lookup_max: int, count: int
) -> list[int]:
    """Up to `count` tokens that followed the last occurrence of the end of `context`."""

def process_logits(
    logits: _Rows,
    params: SamplingParams,
    *,
    prompt_token_ids: Sequence[int],
    output_token_ids: Sequence[int],
    eos_token_ids: Sequence[int],
    bad_words: Sequence[Sequence[int]],
) -> bytearray:
    """The law after one row of logits, as the bytes of V float64."""

def sample(probs: _Rows, *, seed: int, position: int, columns: _Columns = None) -> int:
    """A token of a law (one row), by the noise of `coupled`."""

def verify(
    target_probs: _Rows,
    draft_probs: _Rows,
    draft_token_ids: Sequence[int],
    parents: Sequence[int],
    *,
    method: str,
    seed: int,
    position: int,
    columns: _Columns = None,
) -> tuple[list[int], int]:
    """Verify drafted tokens: those accepted and the one drawn after them, and how many were."""

@final
class Engine:
    """A model, its tokenizer and the thread that steps it; any number of threads may use it.

    In a child made by fork every method raises `ForkError`; after `close`, `ClosedError`.
    """

    @staticmethod
    def load(
        model: str | PathLike[str],
        *,
        max_model_len: int | None,
        max_num_seqs: int,
        num_threads: int | None,
        seed: int,
        speculation: SpeculativeConfig | None,
        chat_template: str | None,
        progress: Callable[[int, int], object] | None,
        draft_model: str | PathLike[str] | None = None,
        max_queued: int = 4096,
        level: str | None = None,
        quantization: str | None = None,
        memory_budget: int | None = None,
        enable_prefix_caching: bool = True,
    ) -> Engine:
        """Load a GGUF file, and its draft model's.

        `level` names an instruction level below the machine's. `progress(done, total)` hears
        bytes, in the calling thread. An exception that it raises, or
        that a signal handler raises, ends the load.
        """

    def encode(self, text: str, specials: bool, prompt: bool) -> list[int]:
        """Token ids of a text.

        With `specials` control tokens written out in it are control tokens, and the one that
        begins a sequence is put in front if the model expects it. A text that is to become a
        `prompt` may not be longer than a context of the longest tokens.
        """

    def decode(self, token_ids: Sequence[int], skip_special: bool) -> str:
        """The text of token ids; ids beyond the vocabulary have none."""

    def chat_prompt(
        self, messages: str, template: str | None, add_generation_prompt: bool
    ) -> tuple[str, list[int]]:
        """Text and token ids of a conversation, given as a JSON array of messages.

        By the template given or the model's own. The text is for reading only: unlike the ids, it
        does not tell the control tokens of the template from those that a message mentions.
        """

    def submit(
        self,
        prompt_token_ids: Sequence[int],
        params: SamplingParams,
        ready: ReadyQueue | None = None,
        tag: int = 0,
    ) -> list[Request]:
        """Queue a prompt for `params.n` answers, which together take one place in the queue.

        Each is announced to `ready` by `tag`.
        """

    def metrics(self, reset: bool) -> _Metrics:
        """Sums over all steps up to the last border; `reset` starts them anew. Does not wait."""

    def close(self) -> None:
        """End the engine after the step in flight; open requests get `ClosedError`.

        A second call does nothing.
        """

    @property
    def max_model_len(self) -> int:
        """Positions of a context, prompt and answer together."""

    @property
    def vocab_size(self) -> int:
        """Size of the model's vocabulary."""

    @property
    def end_token_ids(self) -> list[int]:
        """Tokens that end an answer, ascending."""

    @property
    def bos_token_id(self) -> int | None:
        """Token that begins a sequence."""

    @property
    def eos_token_id(self) -> int | None:
        """Token that ends a sequence."""

    @property
    def memory(self) -> _Memory:
        """Bytes by part, and what the caches hold."""

@final
class Request:
    """An answer under way. Whoever drops it cancels it."""

    @property
    def id(self) -> int:
        """Number of the request, unique in its engine."""

    def next(self) -> _Step:
        """Wait for the next step of the answer; the last one has an `end`, and nothing follows it.

        Waits without the GIL; signal handlers run meanwhile (Ctrl-C within 50 ms).
        """

    def poll(self) -> _Step | None:
        """The next step if it is there; does not wait."""

    def cancel(self) -> None:
        """Give the place to others, at once, and drop the request at the engine's next step.

        Who waits for it gets `RequestAborted`.
        """

@final
class ReadyQueue:
    """Where the requests of one caller announce that there is a step to take, or none any more."""

    def __init__(self) -> None: ...
    def wait(self) -> list[int]:
        """Wait for the tags of requests that have something to take; none after `close`.

        Waits without the GIL. Signal handlers do not run meanwhile: this is for a thread of its
        own.
        """

    def close(self) -> None:
        """End the waiting, when all that was announced before has been taken."""
