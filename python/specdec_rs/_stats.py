"""Statistics of the answers to one prompt as those of one request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from specdec_rs.outputs import SpeculativeDecodingStats


def merged(stats: Sequence[SpeculativeDecodingStats]) -> SpeculativeDecodingStats:
    """The counts of all answers together; rates and means are theirs."""
    if len(stats) == 1:
        return stats[0]
    steps = sum(each.num_spec_steps for each in stats)
    drafted = sum(each.num_draft_tokens for each in stats)
    accepted = sum(each.num_accepted_draft_tokens for each in stats)
    lengths = sorted({d for each in stats for d in each.acceptance_histogram_by_draft_length})
    return SpeculativeDecodingStats(
        mean_acceptance_length=1 + accepted / steps if steps else 1.0,
        draft_acceptance_rate=accepted / drafted if drafted else None,
        acceptance_histogram=_added(each.acceptance_histogram for each in stats),
        acceptance_histogram_by_draft_length={
            length: _added(
                each.acceptance_histogram_by_draft_length.get(length, []) for each in stats
            )
            for length in lengths
        },
        num_spec_steps=steps,
        num_plain_steps=sum(each.num_plain_steps for each in stats),
        num_accepted_draft_tokens=accepted,
        num_draft_tokens=drafted,
        num_spec_tokens=stats[0].num_spec_tokens,
        max_tree_depth=max(each.max_tree_depth for each in stats),
        num_draft_tokens_per_pos=_added(each.num_draft_tokens_per_pos for each in stats),
        num_accepted_tokens_per_pos=_added(each.num_accepted_tokens_per_pos for each in stats),
        draft_stop_reasons={
            reason: sum(each.draft_stop_reasons[reason] for each in stats)
            for reason in stats[0].draft_stop_reasons
        },
    )


def _added(lists: Iterable[list[int]]) -> list[int]:
    return [sum(column) for column in zip_longest(*lists, fillvalue=0)]
