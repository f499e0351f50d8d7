"""What a request gives back."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

import specdec_rs as sd

STATS = sd.SpeculativeDecodingStats(
    mean_acceptance_length=2.5,
    draft_acceptance_rate=0.6,
    acceptance_histogram=[1, 0, 1, 0],
    acceptance_histogram_by_draft_length={2: [0, 0, 1], 3: [1, 0, 0, 0]},
    num_spec_steps=2,
    num_plain_steps=4,
    num_accepted_draft_tokens=3,
    num_draft_tokens=5,
    num_spec_tokens=3,
    max_tree_depth=3,
    num_draft_tokens_per_pos=[2, 2, 1],
    num_accepted_tokens_per_pos=[1, 1, 0],
    draft_stop_reasons={"rejected": 1, "all_accepted": 1},
)


def test_acceptance_by_position_is_a_share_of_the_steps_that_got_there() -> None:
    assert STATS.acceptance_by_position == [0.5, 0.5, 0.0]


def test_an_output_becomes_json() -> None:
    output = sd.RequestOutput(
        request_id="0",
        prompt="a",
        prompt_token_ids=[1],
        outputs=[
            sd.CompletionOutput(0, "b", [2], -0.5, [{2: sd.Logprob(-0.5, 1, "b")}], "stop", None)
        ],
        finished=True,
        metrics=sd.RequestMetrics(0.1, 2.0, 0.0, None, None, STATS),
    )
    read = json.loads(json.dumps(output.to_dict()))
    assert read["outputs"][0]["logprobs"] == [
        {"2": {"logprob": -0.5, "rank": 1, "decoded_token": "b"}}
    ]
    assert read["metrics"]["speculative_decoding"]["acceptance_histogram"] == [1, 0, 1, 0]


@pytest.mark.parametrize(
    "kind",
    [
        sd.CompletionOutput,
        sd.EngineMetrics,
        sd.Logprob,
        sd.RequestMetrics,
        sd.RequestOutput,
        sd.SpeculativeDecodingStats,
        sd.StreamChunk,
    ],
)
def test_every_field_is_documented(kind: type) -> None:
    for field in fields(kind):
        assert f"\n        {field.name}: " in (kind.__doc__ or ""), field.name
