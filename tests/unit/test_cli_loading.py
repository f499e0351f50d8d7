"""What the verbs that load a model take beside it: the same as `LLM`, by the same names."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import specdec_rs as sd
from specdec_rs.cli import chat, demo, generate
from tests.scripts import specdec

PROMPT = "Once upon a time"
# What no option of a verb is for, and why.
NOT_HERE = {
    "max_num_seqs": "a verb runs one request at a time",
    "max_queued_requests": "the same",
    "seed": "--seed is the answer's own, which decides its text whatever this one is",
    "chat_template": "is an option of chat alone",
    "tokenizer": "has one value",
    "dtype": "has one value",
    "device": "has one value",
    "unknown": "catches misspelt names",
}


@pytest.mark.parametrize("verb", [generate, chat, demo], ids=lambda verb: verb.__name__)
def test_every_argument_of_llm_is_an_option(verb: Any) -> None:
    asked = inspect.signature(sd.LLM).parameters
    options = inspect.signature(verb.run).parameters
    missing = [name for name in asked if name not in options]
    assert sorted(missing) == sorted(name for name in NOT_HERE if name not in options)
    for name in set(asked) & set(options) - {"model", "seed"}:
        assert options[name].default == asked[name].default, name


def answer(*arguments: str) -> Any:
    done = specdec(*arguments, "--max-tokens", "24", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_quantization_is_that_of_llm(smollm2: Path) -> None:
    params = sd.SamplingParams(temperature=0, max_tokens=24, logprobs=0)
    with sd.LLM(smollm2, quantization="q4_0") as llm:
        [expected] = llm.generate(PROMPT, params, use_tqdm=False)
    asked = ("generate", PROMPT, "-m", str(smollm2))
    small = answer(*asked, "--quantization", "q4_0")
    assert small["outputs"][0]["token_ids"] == expected.outputs[0].token_ids
    assert small["outputs"] != answer(*asked)["outputs"]


def test_the_context_is_as_long_as_asked(tiny: Path) -> None:
    asked = ("generate", "a b c d e f g h", "-m", str(tiny), "--max-model-len")
    done = specdec(*asked, "8")
    assert done.returncode == 1
    assert done.stderr.startswith("error: the prompt has ")
    assert specdec(*asked, "64").returncode == 0
    done = specdec(*asked, "0")
    assert done.returncode == 2
    assert done.stderr.startswith("error: max_model_len: found 0 (int)")


def test_a_budget_is_kept_or_refused(tiny: Path) -> None:
    asked = ("generate", "a", "-m", str(tiny), "--max-tokens", "2", "--memory-budget")
    assert specdec(*asked, "64MiB").returncode == 0
    small = specdec(*asked, "1B")
    assert small.returncode == 1
    assert small.stderr.startswith("error: memory_budget is 1 bytes, but ")
    wrong = specdec(*asked, "much")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("error: memory_budget: found 'much' (str)")


def test_a_draft_left_out_is_one_line(tiny: Path, cook: Any) -> None:
    config = json.dumps({"method": "auto", "model": str(cook(layers=1))})
    asked = ("generate", "a", "-m", str(tiny), "--max-tokens", "2", "--memory-budget")
    refused = specdec(*asked, "1B")
    needed = refused.stderr.split()[6]
    done = specdec(*asked, f"{needed}B", "--speculative-config", config)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"warning: memory_budget='{needed}B' runs fewer requests with")


def test_a_conversation_is_read_once_unless_that_is_switched_off() -> None:
    said = f"{'Please say hello to all of us. ' * 12}\nAnd again.\n"

    def cached(*options: str) -> list[int]:
        done = specdec("chat", "--max-tokens", "4", "--json", *options, stdin=said)
        return [output["num_cached_tokens"] for output in json.loads(done.stdout)]

    first, second = cached()
    assert (first, second >= 64) == (0, True)
    assert cached("--no-prefix-caching") == [0, 0]


def test_a_chat_template_from_a_file(smollm2: Path, tmp_path: Path) -> None:
    template = tmp_path / "template.jinja"
    template.write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    chatted = answer("chat", PROMPT, "--chat-template", str(template))
    assert chatted["outputs"] == answer("generate", PROMPT)["outputs"]
    lost = specdec("chat", PROMPT, "--chat-template", str(tmp_path / "none"))
    assert lost.returncode == 2
    assert lost.stderr.startswith("error: --chat-template: ")
    assert lost.stderr.count("\n") == 1
