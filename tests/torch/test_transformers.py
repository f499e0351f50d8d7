"""Our n-gram drafts in `generate` of transformers: the same text, and some of it drafted."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import specdec_rs as sd
from specdec_rs.transformers import NgramCandidateGenerator


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).double().eval()


PROMPTS = [[1, 2, 3, 4, 1, 2, 3], [5, 9, 5, 9, 5], list(range(20)), [7]]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_text_is_the_same_and_partly_drafted(
    model: LlamaForCausalLM, prompt: list[int]
) -> None:
    ids = torch.tensor([prompt])
    asked = {"max_new_tokens": 120, "do_sample": False, "attention_mask": torch.ones_like(ids)}
    plain = model.generate(ids, **asked)
    drafts = NgramCandidateGenerator(num_speculative_tokens=6)
    for _ in range(2):
        assert model.generate(ids, custom_generate=drafts, **asked).tolist() == plain.tolist()
    # A random model soon goes round in circles.
    assert 0 < drafts.num_accepted_draft_tokens <= drafts.num_draft_tokens
    # The model was only borrowed.
    assert "_get_candidate_generator" not in vars(model)


def test_the_length_is_kept(model: LlamaForCausalLM) -> None:
    ids = torch.tensor([[3, 3, 3, 3, 3, 3]])
    for count in range(1, 5):
        drafts = NgramCandidateGenerator(num_speculative_tokens=16, prompt_lookup_min=1)
        found = model.generate(ids, max_new_tokens=count, do_sample=False, custom_generate=drafts)
        assert found.shape == (1, 6 + count)
        assert drafts.num_draft_tokens <= count - 1 + 16 * (count > 1)


def test_candidates_continue_the_last_occurrence() -> None:
    drafts = NgramCandidateGenerator(num_speculative_tokens=3)
    ids = torch.tensor([[8, 1, 2, 5, 6, 7, 1, 2]])
    candidates, logits = drafts.get_candidates(ids)
    assert candidates.tolist() == [[8, 1, 2, 5, 6, 7, 1, 2, 5, 6, 7]]
    assert logits is None
    nothing, _ = drafts.get_candidates(torch.tensor([[1, 2, 3]]))
    assert nothing.tolist() == [[1, 2, 3]]
    assert nothing.dtype == torch.int64


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(sd.ConfigError, match="one sequence"):
        NgramCandidateGenerator().get_candidates(torch.zeros((2, 3), dtype=torch.int64))
    for wrong in (
        {"num_speculative_tokens": 0},
        {"num_speculative_tokens": 2**70},
        {"prompt_lookup_max": 1},
        {"prompt_lookup_max": 2**70},
        {"prompt_lookup_min": 10**5000},
    ):
        with pytest.raises(sd.ConfigError, match=next(iter(wrong))):
            NgramCandidateGenerator(**wrong)
