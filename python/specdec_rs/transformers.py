"""Drafts of our n-gram index for `generate` of Hugging Face transformers.

    from specdec_rs.transformers import NgramCandidateGenerator

    drafts = NgramCandidateGenerator(num_speculative_tokens=8)
    output = model.generate(**inputs, custom_generate=drafts)
    print(drafts.num_accepted_draft_tokens, "of", drafts.num_draft_tokens)

transformers verifies the drafts by its own assisted decoding: greedy output is that of `generate`
without drafts (up to its own rounding over widths), sampled output has the same law, because the
drafts are chosen by a rule and compared with the model's own samples. One sequence at a time, as
transformers has it. Needs transformers 5 and torch, which this package does not install.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.generation import CandidateGenerator

from specdec_rs import _checks as check
from specdec_rs import _core
from specdec_rs.errors import ConfigError

__all__ = ["NgramCandidateGenerator"]


class NgramCandidateGenerator(CandidateGenerator):  # type: ignore[misc]  # an optional package
    """Proposes what followed the last time the text ended as it does now.

    Pass it to `generate` as `custom_generate`, for as many calls as you like; or use it as the
    candidate generator that it is. Where text repeats itself the copy goes on with its own tokens,
    for as long as asked.

    Args:
        num_speculative_tokens: most tokens of a draft, at least 1.
        prompt_lookup_min: least number of tokens at the end that must have occurred before.
        prompt_lookup_max: most tokens that are compared; longer matches win.

    Attributes:
        num_draft_tokens: tokens drafted so far, over all calls.
        num_accepted_draft_tokens: those of them that the model confirmed.

    Raises:
        ConfigError: a number out of range.
    """

    def __init__(
        self,
        *,
        num_speculative_tokens: int = 4,
        prompt_lookup_min: int = 2,
        prompt_lookup_max: int = 5,
    ) -> None:
        most = check.U32_MAX
        self._count = check.integer("num_speculative_tokens", num_speculative_tokens, 1, most)
        self._min = check.integer("prompt_lookup_min", prompt_lookup_min, 1, most)
        self._max = check.integer("prompt_lookup_max", prompt_lookup_max, self._min, most)
        self._max_length: int | None = None
        self._drafted = 0
        self.num_draft_tokens = 0
        self.num_accepted_draft_tokens = 0

    def get_candidates(
        self, input_ids: torch.Tensor, **_: object
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The text with a draft behind it.

        Args:
            input_ids: int64, shape (1, length).

        Returns:
            int64, shape (1, length + drafted), on the device of `input_ids`; and None, because the
            tokens were drawn from no law.

        Raises:
            ConfigError: more than one sequence.
        """
        if input_ids.ndim != 2 or input_ids.shape[0] != 1:
            raise ConfigError(
                f"input_ids has shape {tuple(input_ids.shape)}, expected (1, length): transformers "
                "drafts for one sequence at a time"
            )
        count = self._count
        if self._max_length is not None:
            # One token comes from the model itself.
            count = min(count, max(self._max_length - input_ids.shape[1] - 1, 0))
        draft = _core.ngram(
            input_ids[0].tolist(),
            prompt_lookup_min=self._min,
            prompt_lookup_max=self._max,
            count=count,
        )
        self._drafted = len(draft)
        return torch.cat([input_ids, input_ids.new_tensor([draft])], dim=1), None

    def update_candidate_strategy(
        self,
        input_ids: torch.Tensor,  # noqa: ARG002 - part of the interface
        scores: torch.Tensor,  # noqa: ARG002
        num_matches: int | torch.Tensor,
    ) -> None:
        """Count what became of the draft."""
        self.num_draft_tokens += self._drafted
        self.num_accepted_draft_tokens += int(num_matches)

    def __call__(self, model: Any, input_ids: torch.Tensor, **kwargs: Any) -> Any:
        """Decode in place of `generate`'s own loop; `generate` calls it."""
        self._max_length = kwargs["generation_config"].max_length
        try:
            return type(model)._assisted_decoding(_Drafting(model, self), input_ids, **kwargs)  # noqa: SLF001 - what `generate` itself would call
        finally:
            self._max_length = None


class _Drafting:
    """A model whose assisted decoding takes our candidates; the model itself is not changed."""

    def __init__(self, model: Any, candidates: NgramCandidateGenerator) -> None:
        self._model = model
        self._candidates = candidates

    def _get_candidate_generator(self, **_: object) -> NgramCandidateGenerator:
        return self._candidates

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._model(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)
