"""`LLM` on a real small model: what goes in, what comes out."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import specdec_rs as sd
from specdec_rs import _prompts

GREEDY = sd.SamplingParams(temperature=0, max_tokens=24)
COUNT = "Count: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5,"
STORY = "Once upon a time there was a lighthouse"
END = "<|im_start|>user\nSay yes.<|im_end|>\n<|im_start|>assistant\n"


def test_an_output_has_everything(llm: sd.LLM) -> None:
    tokenizer = llm.get_tokenizer()
    (output,) = llm.generate(COUNT, GREEDY, use_tqdm=False)
    (answer,) = output.outputs
    assert output.finished
    assert output.prompt == COUNT
    assert output.prompt_token_ids == tokenizer.encode(COUNT)
    assert len(answer.token_ids) == 24
    assert answer.text == tokenizer.decode(answer.token_ids)
    assert (answer.finish_reason, answer.stop_reason) == ("length", None)
    assert (answer.logprobs, answer.cumulative_logprob) == (None, None)


def test_the_statistics_add_up(llm: sd.LLM) -> None:
    (output,) = llm.generate(COUNT, GREEDY, use_tqdm=False)
    metrics = output.metrics
    stats = metrics.speculative_decoding
    assert stats is not None
    assert 0 < stats.num_accepted_draft_tokens < stats.num_draft_tokens
    histogram = stats.acceptance_histogram
    assert len(histogram) == stats.num_spec_tokens + 1
    assert sum(histogram) == stats.num_spec_steps
    assert sum(i * n for i, n in enumerate(histogram)) == stats.num_accepted_draft_tokens
    assert stats.mean_acceptance_length == pytest.approx(
        1 + stats.num_accepted_draft_tokens / stats.num_spec_steps
    )
    assert stats.draft_acceptance_rate == pytest.approx(
        stats.num_accepted_draft_tokens / stats.num_draft_tokens
    )
    by_length = stats.acceptance_histogram_by_draft_length
    assert sum(map(sum, by_length.values())) == stats.num_spec_steps
    assert sum(stats.num_accepted_tokens_per_pos) == stats.num_accepted_draft_tokens
    steps = stats.num_spec_steps + stats.num_plain_steps
    assert sum(stats.draft_stop_reasons.values()) == steps
    assert steps + stats.num_accepted_draft_tokens == len(output.outputs[0].token_ids)
    assert all(0 <= share <= 1 for share in stats.acceptance_by_position)
    assert metrics.tokens_per_second is not None
    assert metrics.mean_itl_ms == pytest.approx(1e3 / metrics.tokens_per_second)


def test_waiting_ends_before_the_first_forward(smollm2: Path) -> None:
    with sd.LLM(smollm2) as llm:
        (output,) = llm.generate(COUNT, sd.SamplingParams(max_tokens=1), use_tqdm=False)
        first = output.metrics.time_to_first_token_ms
        assert first is not None
        assert first - output.metrics.queue_time_ms >= llm.get_metrics().forward_time * 1e3


def test_engine_metrics_count_steps_and_start_anew(smollm2: Path) -> None:
    with sd.LLM(smollm2, speculative_config=None) as llm:
        llm.generate(COUNT, GREEDY, use_tqdm=False)
        metrics = llm.get_metrics()
        assert metrics.num_steps == 24  # one reads the prompt and draws the first token
        assert metrics.forward_by_rows[1][0] == 23
        llm.reset_metrics()
        assert llm.get_metrics().num_steps == 0


def test_without_speculation_there_are_no_statistics(smollm2: Path, llm: sd.LLM) -> None:
    with sd.LLM(smollm2, speculative_config=None) as plain:
        (output,) = plain.generate(COUNT, GREEDY, use_tqdm=False)
    (fast,) = llm.generate(COUNT, GREEDY, use_tqdm=False)
    assert output.metrics.speculative_decoding is None
    assert output.outputs == fast.outputs


def test_a_stream_is_the_same_answer_in_steps(llm: sd.LLM) -> None:
    (whole,) = llm.generate(COUNT, GREEDY, use_tqdm=False)
    chunks = list(llm.stream(COUNT, GREEDY))
    assert "".join(chunk.text for chunk in chunks) == whole.outputs[0].text
    streamed = [token for chunk in chunks for token in chunk.token_ids]
    assert streamed == whole.outputs[0].token_ids
    assert all(chunk.token_ids for chunk in chunks)
    assert all(0 <= chunk.from_draft <= len(chunk.token_ids) for chunk in chunks)
    assert any(len(chunk.token_ids) == chunk.from_draft + 1 > 2 for chunk in chunks)
    assert [chunk.finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    last = chunks[-1]
    assert last.finish_reason == "length"
    assert last.output is not None
    assert last.output.outputs == whole.outputs
    stats = last.output.metrics.speculative_decoding
    assert stats is not None
    assert sum(chunk.from_draft for chunk in chunks) == stats.num_accepted_draft_tokens


def test_the_end_token_is_kept_and_its_text_is_not(llm: sd.LLM) -> None:
    (output,) = llm.generate(END, sd.SamplingParams(temperature=0), use_tqdm=False)
    answer = output.outputs[0]
    assert (answer.finish_reason, answer.stop_reason) == ("stop", None)
    assert answer.token_ids[-1] in llm.get_tokenizer().end_token_ids
    assert "<|" not in answer.text


@pytest.mark.parametrize("blank", ["\n", " ", "\n\n"])
def test_a_bad_word_of_blanks_is_banned_as_it_is(llm: sd.LLM, blank: str) -> None:
    [token] = llm.get_tokenizer().encode(blank)
    # A text in which it would come.
    params = replace(GREEDY, logit_bias={token: 8.0}, temperature=1, seed=1)
    said = [
        llm.generate("1\n2\n\n3\n", replace(params, bad_words=banned), use_tqdm=False)[0]
        for banned in (None, blank)
    ]
    assert [token in output.outputs[0].token_ids for output in said] == [True, False]


def test_ignore_eos_goes_on(llm: sd.LLM) -> None:
    params = sd.SamplingParams(temperature=0, ignore_eos=True, max_tokens=64)
    (output,) = llm.generate(END, params, use_tqdm=False)
    assert output.outputs[0].finish_reason == "length"
    assert len(output.outputs[0].token_ids) == 64


def test_a_stop_token_and_a_stop_string(llm: sd.LLM) -> None:
    (free,) = llm.generate(COUNT, GREEDY, use_tqdm=False)
    third = free.outputs[0].token_ids[2]
    stopped = sd.SamplingParams(temperature=0, stop_token_ids=[third])
    text = sd.SamplingParams(temperature=0, stop=["never there", " 8"])
    by_token, by_text = llm.generate([COUNT, COUNT], [stopped, text], use_tqdm=False)
    first = free.outputs[0].token_ids.index(third)
    assert by_token.outputs[0].token_ids == free.outputs[0].token_ids[: first + 1]
    assert by_token.outputs[0].stop_reason == third
    assert by_text.outputs[0].text == free.outputs[0].text.partition(" 8")[0]
    assert (by_text.outputs[0].finish_reason, by_text.outputs[0].stop_reason) == ("stop", " 8")


def test_a_stop_string_is_never_streamed(llm: sd.LLM) -> None:
    params = sd.SamplingParams(temperature=0, stop=" 7, 8", max_tokens=24)
    text = "".join(chunk.text for chunk in llm.stream(COUNT, params))
    assert text.endswith(" 6,")


def test_logprobs_have_vllms_shape(llm: sd.LLM) -> None:
    params = sd.SamplingParams(temperature=1.5, seed=3, max_tokens=16, logprobs=2)
    (output,) = llm.generate(STORY, params, use_tqdm=False)
    answer = output.outputs[0]
    assert answer.logprobs is not None
    assert len(answer.logprobs) == len(answer.token_ids)
    total = 0.0
    for token, entry in zip(answer.token_ids, answer.logprobs, strict=True):
        total += entry[token].logprob
        ranks = sorted(e.rank or 0 for e in entry.values())
        assert ranks[:2] == [1, 2]
        assert len(entry) == (2 if (entry[token].rank or 0) <= 2 else 3)
        assert sum(math.exp(e.logprob) for e in entry.values()) <= 1 + 1e-6
        assert entry[token].decoded_token == llm.get_tokenizer().decode(token)
    assert answer.cumulative_logprob == pytest.approx(total)
    assert any(len(entry) == 3 for entry in answer.logprobs)  # the temperature is high


def test_logprobs_zero_reports_only_the_token(llm: sd.LLM) -> None:
    params = sd.SamplingParams(temperature=0, max_tokens=4, logprobs=0)
    (output,) = llm.generate(STORY, params, use_tqdm=False)
    assert output.outputs[0].logprobs is not None
    assert [list(entry) for entry in output.outputs[0].logprobs] == [
        [token] for token in output.outputs[0].token_ids
    ]


def test_a_seed_repeats_and_another_differs(llm: sd.LLM) -> None:
    def text(seed: int) -> str:
        params = sd.SamplingParams(seed=seed, max_tokens=24)
        return llm.generate(STORY, params, use_tqdm=False)[0].outputs[0].text

    assert text(1) == text(1)
    assert text(1) != text(2)


def test_without_a_seed_calls_differ(llm: sd.LLM) -> None:
    params = sd.SamplingParams(max_tokens=24)
    outputs = llm.generate([STORY] * 3, params, use_tqdm=False)
    assert len({output.outputs[0].text for output in outputs}) == 3
    assert len({output.request_id for output in outputs}) == 3


def test_no_max_tokens_is_the_rest_of_the_context(smollm2: Path) -> None:
    with sd.LLM(smollm2, max_model_len=64) as llm:
        params = sd.SamplingParams(temperature=0, max_tokens=None, ignore_eos=True)
        (output,) = llm.generate(COUNT, params, use_tqdm=False)
        assert output.outputs[0].finish_reason == "length"
        assert len(output.prompt_token_ids) + len(output.outputs[0].token_ids) == 64


def test_more_prompts_than_places(smollm2: Path, llm: sd.LLM) -> None:
    prompts = [f"{STORY} number {n}" for n in range(5)]
    with sd.LLM(smollm2, max_num_seqs=2) as narrow:
        few = narrow.generate(prompts, GREEDY, use_tqdm=False)
    many = llm.generate(prompts, GREEDY, use_tqdm=False)
    assert [o.prompt for o in few] == prompts
    assert [o.outputs for o in few] == [o.outputs for o in many]


def test_token_ids_are_a_prompt(llm: sd.LLM) -> None:
    ids = llm.get_tokenizer().encode(COUNT)
    forms: list[_prompts.Prompt] = [
        {"prompt_token_ids": ids},
        {"prompt_token_ids": ids, "prompt": "my own"},
        {"prompt": COUNT},
        COUNT,
    ]
    outputs = llm.generate(forms, GREEDY, use_tqdm=False)
    assert [output.prompt for output in outputs] == [None, "my own", COUNT, COUNT]
    assert all(output.prompt_token_ids == ids for output in outputs)
    assert all(output.outputs == outputs[0].outputs for output in outputs)


def test_no_prompts_no_outputs(llm: sd.LLM) -> None:
    assert llm.generate([], GREEDY, use_tqdm=False) == []


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_for_terminals_and_goes_to_stderr(
    llm: sd.LLM, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    class Stderr(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    stderr = Stderr()
    monkeypatch.setattr(sys, "stderr", stderr)
    llm.generate([COUNT, STORY], sd.SamplingParams(max_tokens=2))
    assert ("100%" in stderr.getvalue()) == terminal


def test_the_tokenizer_round_trips(llm: sd.LLM) -> None:
    tokenizer = llm.get_tokenizer()
    for text in ("", "naïve 123 中文 🙂\n\t x", "<|im_end|>"):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids) == text
        assert not set(ids) & set(tokenizer.end_token_ids)
    (end,) = tokenizer.encode("<|im_end|>")
    assert tokenizer.decode(end) == "<|im_end|>"
    assert tokenizer.decode([end, end], skip_special_tokens=True) == ""
    assert tokenizer.eos_token_id in tokenizer.end_token_ids
    assert tokenizer.vocab_size == 49152


BAD_CALLS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"prompts": ""}, sd.ContextLengthError, "no token"),
    ({"prompts": ["a", ""]}, sd.ContextLengthError, "no token"),
    ({"prompts": "a " * 9000}, sd.ContextLengthError, "max_model_len"),
    ({"prompts": "\ud800"}, sd.ConfigError, r"prompts\[0\]: character 0 is a lone surrogate"),
    ({"prompts": 3}, sd.ConfigError, "prompts: found 3"),
    ({"prompts": b"a"}, sd.ConfigError, "prompts: found"),
    ({"prompts": [1]}, sd.ConfigError, r"prompts\[0\]: found 1"),
    ({"prompts": {"text": "a"}}, sd.ConfigError, r"prompts\[0\]: found .*prompt_token_ids"),
    ({"prompts": [{}]}, sd.ConfigError, r"prompts\[0\]: found"),
    ({"prompts": {"prompt": None}}, sd.ConfigError, r"prompts\[0\]: found"),
    ({"prompts": {"prompt": 1}}, sd.ConfigError, r"prompts\[0\]: found"),
    ({"prompts": {"prompt_token_ids": []}}, sd.ContextLengthError, "no token"),
    ({"prompts": {"prompt_token_ids": [-1]}}, sd.ConfigError, r"prompt_token_ids'\]\[0\]"),
    ({"prompts": {"prompt_token_ids": [49152]}}, sd.ConfigError, "prompt token 0 is 49152"),
    ({"prompts": "a", "sampling_params": {"n": 1}}, sd.ConfigError, "sampling_params: found"),
    ({"prompts": "a", "sampling_params": [GREEDY] * 2}, sd.ConfigError, "a list of 1"),
    ({"prompts": "a", "sampling_params": [None]}, sd.ConfigError, "sampling_params: found"),
    ({"prompts": "a", "use_tqdm": 1}, sd.ConfigError, "use_tqdm: found 1"),
    (
        {"prompts": "a", "sampling_params": sd.SamplingParams(stop_token_ids=[49152])},
        sd.ConfigError,
        "stop_token_ids is 49152",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), BAD_CALLS)
def test_a_bad_call_is_a_typed_error(
    llm: sd.LLM, call: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        llm.generate(**{"use_tqdm": False, **call})


def test_an_error_tells_which_prompt(llm: sd.LLM) -> None:
    with pytest.raises(sd.ContextLengthError) as caught:
        llm.generate(["a", "b", ""], use_tqdm=False)
    assert caught.value.__notes__ == ["this was prompt 2 of 0..2"]


def test_a_bad_stream_raises_before_the_first_chunk(llm: sd.LLM) -> None:
    with pytest.raises(sd.ContextLengthError):
        llm.stream("")


def test_several_answers_take_one_place_in_the_queue(tiny: Path) -> None:
    params = sd.SamplingParams(n=20, seed=4, max_tokens=6, ignore_eos=True)
    with sd.LLM(tiny) as wide:
        (expected,) = wide.generate("a", params, use_tqdm=False)
    with sd.LLM(tiny, max_num_seqs=2, max_queued_requests=1) as narrow:
        for output in narrow.generate(["a"] * 5, params, use_tqdm=False):
            assert output.outputs == expected.outputs
        (chat,) = narrow.chat([{"role": "user", "content": "a"}], params, use_tqdm=False)
        assert len(chat.outputs) == 20


def test_a_closed_stream_s_place_is_free_at_once(smollm2: Path) -> None:
    long = sd.SamplingParams(max_tokens=4000, ignore_eos=True)
    with sd.LLM(smollm2, max_num_seqs=1, max_queued_requests=0) as llm:
        for _ in range(5):
            stream = llm.stream("a", long)
            next(stream)
            with pytest.raises(sd.QueueFullError):
                llm.stream("b", long)
            stream.close()
