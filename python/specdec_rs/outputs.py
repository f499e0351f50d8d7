"""What a request gives back, in vLLM's shapes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = [
    "CompletionOutput",
    "EngineMetrics",
    "FinishReason",
    "Logprob",
    "MemoryReport",
    "RequestMetrics",
    "RequestOutput",
    "SpeculativeDecodingStats",
    "StreamChunk",
]

FinishReason = Literal["stop", "length", "abort", "error"]


@dataclass(frozen=True)
class Logprob:
    """One token's place in the model's raw law (log-softmax before temperature and filters).

    Attributes:
        logprob: natural logarithm of the token's probability.
        rank: 1 for the most likely token of the vocabulary.
        decoded_token: the token as text.
    """

    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclass(frozen=True)
class SpeculativeDecodingStats:
    """How speculation went, for one request. The formula stands next to each number.

    A step is one forward of the model in which at least one drafted token was verified. For a
    tree, drafted tokens are the nodes verified, and a step accepts the nodes of one path.

    Attributes:
        mean_acceptance_length: tokens per step: 1 + accepted / steps.
        draft_acceptance_rate: accepted / drafted; None when nothing was drafted.
        acceptance_histogram: `[i]` is the number of steps in which i drafted tokens were accepted
            (the token drawn after them is not counted).
        acceptance_histogram_by_draft_length: the same, split by the length of the step's draft.
        num_spec_steps: steps.
        num_plain_steps: forwards that verified no draft.
        num_accepted_draft_tokens: drafted tokens accepted.
        num_draft_tokens: drafted tokens verified.
        num_spec_tokens: the configured number of tokens to draft in a step.
        max_tree_depth: longest path drafted.
        num_draft_tokens_per_pos: `[i]` is the number of steps whose draft reached depth i + 1.
        num_accepted_tokens_per_pos: `[i]` is the number of steps that accepted a draft at depth
            i + 1.
        draft_stop_reasons: why each step's accepted run ended, with counts: "rejected" (the model
            chose another token), "all_accepted" (the draft was used up), "no_draft" (nothing to
            propose), "budget" (no room to draft: `max_tokens` or the context was near), "prompt"
            (the step read the prompt), "finished" (the request ended inside the run). Steps that
            drafted nothing are counted here too.
    """

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

    @property
    def acceptance_by_position(self) -> list[float]:
        """Share of the steps that reached each depth and accepted there."""
        pairs = zip(self.num_accepted_tokens_per_pos, self.num_draft_tokens_per_pos, strict=True)
        return [accepted / drafted for accepted, drafted in pairs if drafted]


@dataclass(frozen=True)
class RequestMetrics:
    """Times of one request, and its speculation.

    Attributes:
        queue_time_ms: from submission to the first forward.
        time_to_first_token_ms: from submission to the first token.
        generation_time_ms: from the first token to the last.
        mean_itl_ms: generation time per token after the first. Tokens accepted in one step
            share a moment, so single gaps mean nothing; None below two tokens.
        tokens_per_second: tokens after the first over the generation time; None below two tokens.
        speculative_decoding: None when speculation was off, and for an aborted answer.
        num_preemptions: how often its answers gave their place in the cache to older requests and
            were read anew; more than a few say that the cache is too small for so many at once.
    """

    queue_time_ms: float
    time_to_first_token_ms: float | None
    generation_time_ms: float
    mean_itl_ms: float | None
    tokens_per_second: float | None
    speculative_decoding: SpeculativeDecodingStats | None = None
    num_preemptions: int = 0


@dataclass(frozen=True)
class CompletionOutput:
    """One answer to a prompt.

    Attributes:
        index: which of the request's `n` answers this is.
        text: the answer, without the stop string that ended it.
        token_ids: its tokens, the end or stop token included.
        cumulative_logprob: sum of the tokens' log-probabilities; None unless asked for.
        logprobs: for every token, the asked number of most likely tokens and the token itself, by
            id; None unless asked for.
        finish_reason: "stop" (end token, stop token or stop string), "length", "abort", "error".
        stop_reason: the stop string or stop token id that ended the text; None for the model's
            own end token.
    """

    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None = None
    logprobs: list[dict[int, Logprob]] | None = None
    finish_reason: FinishReason | None = None
    stop_reason: int | str | None = None


@dataclass(frozen=True)
class RequestOutput:
    """Everything about one finished request.

    Attributes:
        request_id: unique within its `LLM`.
        prompt: the text that was tokenised.
        prompt_token_ids: its tokens.
        outputs: the answers, `SamplingParams.n` of them.
        finished: whether every answer came to its end.
        metrics: times and speculation; nothing while the request is unfinished, or if it was
            aborted.
        prompt_logprobs: None unless asked for, while the request is unfinished, or if it was
            aborted.
        num_cached_tokens: tokens of the prompt that needed no computation, because an earlier
            request began alike; None while the request is unfinished, or if it was aborted.
    """

    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    finished: bool
    metrics: RequestMetrics
    prompt_logprobs: list[dict[int, Logprob] | None] | None = None
    num_cached_tokens: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists, ready for `json.dumps`."""
        return asdict(self)


@dataclass(frozen=True)
class StreamChunk:
    """What one step added to a streamed answer.

    Attributes:
        text: new text; empty while a character or a possible stop string is incomplete.
        token_ids: new tokens only: a step that accepts 3 drafts is a chunk of 4.
        from_draft: how many of `token_ids`, from the first, were drafted.
        finish_reason: set on the last chunk.
        output: the whole request, on the last chunk.
    """

    text: str
    token_ids: list[int]
    from_draft: int = 0
    finish_reason: FinishReason | None = None
    output: RequestOutput | None = field(default=None, repr=False)


@dataclass(frozen=True)
class EngineMetrics:
    """Where the engine's time went since it was loaded or the metrics were reset.

    Attributes:
        num_steps: steps; each is one forward pass for all running requests.
        num_draft_failures: steps that went on without drafts because a drafter failed.
        num_preemptions: how often an answer gave its place in the cache to older requests.
        prefix_cache_queries: tokens of the prompts that have begun to run.
        prefix_cache_hits: those of them that needed no computation.
        draft_time: seconds spent proposing.
        forward_time: seconds spent in forward passes.
        verify_time: seconds spent on laws, verification and text.
        commit_time: seconds spent moving cache entries.
        forward_by_rows: by the number of rows of a pass: how many passes, and their seconds. The
            measured cost of verifying that many tokens at once.
    """

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


@dataclass(frozen=True)
class MemoryReport:
    """Bytes by part. The tokenizer, which takes some MiB, and Python itself are not counted.

    Attributes:
        budget: `memory_budget` in bytes; None without one.
        weights: the model's weights.
        kv_cache: keys and values of its cache; memory is touched as it fills.
        activations: what one pass computes with.
        draft_weights: the same of a draft model; 0 without one.
        draft_kv_cache: likewise.
        draft_activations: likewise.
        kv_cache_tokens: positions that the cache holds, those of all running requests together.
        draft_kv_cache_tokens: positions that the draft model's cache holds.
        kv_tokens_lost_to_draft: positions that the cache would hold more within the budget without
            the draft model; 0 without a budget.
        draft_left_out: whether a draft model was left out because the budget holds fewer contexts
            with it (`method="auto"` only).
    """

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

    @property
    def total(self) -> int:
        """Bytes of all parts."""
        own = self.weights + self.kv_cache + self.activations
        return own + self.draft_weights + self.draft_kv_cache + self.draft_activations
