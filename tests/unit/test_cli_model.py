"""The verbs that run a model: `generate`, `chat`, `demo`."""

from __future__ import annotations

import json

import pytest

from tests.scripts import specdec

pytestmark = pytest.mark.model

PROMPT = "one two three four one two three four one two"


def test_generate_prints_the_answer_and_nothing_else() -> None:
    done = specdec("generate", PROMPT, "--max-tokens", "12")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(" three four")
    assert "tokens/s" in done.stderr


def test_generate_reads_its_prompt_from_a_pipe() -> None:
    piped = specdec("generate", "--max-tokens", "12", stdin=PROMPT)
    assert piped.stdout == specdec("generate", PROMPT, "--max-tokens", "12").stdout


def test_generate_gives_one_document_and_speculation_does_not_change_it() -> None:
    arguments = ("generate", PROMPT, "--max-tokens", "24", "--temperature", "1", "--seed", "5")
    speculative = json.loads(specdec(*arguments, "--json").stdout)
    plain = json.loads(specdec(*arguments, "--speculative-config", "none", "--json").stdout)
    assert speculative["outputs"] == plain["outputs"]
    assert speculative["metrics"]["speculative_decoding"]["num_draft_tokens"] > 0
    assert plain["metrics"]["speculative_decoding"] is None


def test_chat_answers_a_message_and_holds_a_conversation() -> None:
    once = specdec("chat", "Say hello.", "--max-tokens", "16")
    assert once.returncode == 0, once.stderr
    talk = specdec("chat", "--max-tokens", "16", stdin="Say hello.\nAnd again.\n")
    assert talk.returncode == 0, talk.stderr
    assert talk.stdout.startswith(once.stdout)
    assert len(talk.stdout) > len(once.stdout)


def test_demo_reports_equal_texts_and_what_speculation_did() -> None:
    done = specdec("demo", "--max-tokens", "48", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["same_text"] is True
    assert report["num_tokens"] == 48
    assert report["speculation"]["num_accepted_draft_tokens"] > 0
    assert report["plain_tokens_per_second"] > 0
    assert report["speculative_tokens_per_second"] > 0


def test_demo_shows_both_texts_where_there_is_no_terminal() -> None:
    shown = specdec("demo", "--max-tokens", "24").stdout
    plain, speculative = shown.split("--- speculative\n")
    text = plain.removeprefix("--- plain\n").rstrip("\n")
    assert text
    assert speculative.startswith(text)
    for part in ("same text", "tokens/s", "acceptance", "position 1", "why drafts stopped"):
        assert part in shown


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ('{"method": "nonsense"}', "method"),
        ("{not json", "not JSON"),
        ("[]", "speculative-config"),
        ("off", "--speculative-config: found 'off' (str), expected auto, none or JSON"),
        ("None", """such as '{"method": "ngram"}'"""),
        ('{"a":' * 10_000, "not JSON"),
    ],
)
def test_a_wrong_speculative_config_is_one_line_and_status_2(option: str, reason: str) -> None:
    done = specdec("generate", PROMPT, "--speculative-config", option)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_a_conversation_can_be_one_document() -> None:
    done = specdec("chat", "--max-tokens", "8", "--json", stdin="Say hello.\nAnd again.\n")
    answers = json.loads(done.stdout)
    assert len(answers) == 2
    assert all(answer["outputs"][0]["text"] for answer in answers)
