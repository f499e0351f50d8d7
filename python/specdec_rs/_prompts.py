"""What callers may give as a prompt or a conversation, checked and told apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, TypeGuard

from specdec_rs import _checks as check
from specdec_rs._core import Engine
from specdec_rs.errors import ConfigError
from specdec_rs.params import SamplingParams

__all__ = ["Conversation", "Message", "Prompt", "TextPrompt", "TokensPrompt"]


class TextPrompt(TypedDict):
    """A prompt as text; special tokens written in it are special tokens."""

    prompt: str


class TokensPrompt(TypedDict):
    """A prompt as token ids; a text beside them is only passed on to the output."""

    prompt_token_ids: Sequence[int]
    prompt: NotRequired[str | None]


Prompt = str | TextPrompt | TokensPrompt
Message = Mapping[str, Any]
Conversation = Sequence[Message]

_PROMPT = 'a string, {"prompt": str} or {"prompt_token_ids": [int, ...]}'
# What a message may hold instead of content.
_INSTEAD = ("tool_calls", "function_call", "tool_responses", "reasoning_content", "thinking")
_CONVERSATION = 'a list of messages like {"role": "user", "content": "..."}'


@dataclass(frozen=True)
class Encoded:
    """A prompt ready for the engine: its text, if there is one, and its tokens."""

    text: str | None
    token_ids: list[int]


def encode(engine: Engine, prompt: object, name: str = "prompt") -> Encoded:
    """One prompt of any kind.

    Raises:
        ConfigError: it is none.
    """
    if isinstance(prompt, str):
        written = check.unicode(name, prompt)
        return Encoded(written, engine.encode(written, specials=True, prompt=True))
    if not isinstance(prompt, Mapping) or not {"prompt", "prompt_token_ids"}.issuperset(prompt):
        raise check.wrong(name, prompt, _PROMPT)
    text = prompt.get("prompt")
    if not isinstance(text, str | None) or not prompt:
        raise check.wrong(name, prompt, _PROMPT)
    if "prompt_token_ids" in prompt:
        ids = check.token_ids(f"{name}['prompt_token_ids']", prompt["prompt_token_ids"])
        return Encoded(text, list(ids))
    return encode(engine, text, name)


@dataclass(frozen=True)
class ChatForm:
    """How a conversation becomes a prompt: by which template, open for an answer or not."""

    template: str | None = None
    add_generation_prompt: bool = True

    def __post_init__(self) -> None:
        if self.template is not None:
            check.text("chat_template", self.template)
        check.flag("add_generation_prompt", self.add_generation_prompt)


def render(engine: Engine, messages: Conversation, form: ChatForm = ChatForm()) -> Encoded:
    """One conversation as a prompt. Text of messages never becomes a special token.

    Raises:
        ConfigError: the template refuses it, or there is none.
    """
    try:
        plain = [_plain(index, message) for index, message in enumerate(messages)]
        document = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    except ConfigError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"messages: found what is no JSON ({error})") from None
    check.unicode("messages", document)
    text, token_ids = engine.chat_prompt(document, form.template, form.add_generation_prompt)
    return Encoded(text, token_ids)


def _plain(index: int, message: Message) -> dict[str, Any]:
    """The message with its content as one text: OpenAI's text parts joined by line ends."""
    content = message.get("content")
    if content is None and "role" in message and not any(map(message.get, _INSTEAD)):
        name = f"messages[{index}]"
        raise ConfigError(f"{name} has no content; give it a text or a list of parts as 'content'")
    if content is None or isinstance(content, str):
        return dict(message)
    parts = content if isinstance(content, Sequence) else ()
    texts = [p["text"] for p in parts if isinstance(p, Mapping) and p.get("type") == "text"]
    if not texts or len(texts) != len(parts) or not all(isinstance(t, str) for t in texts):
        name = f"messages[{index}]['content']"
        raise check.wrong(name, content, 'text or a list of parts {"type": "text", "text": str}')
    return {**message, "content": "\n".join(texts)}


def several(name: str, value: object) -> list[object]:
    """The prompts of a call: one, or a list of them."""
    if isinstance(value, (str, Mapping)):
        return [value]
    return list(check.items(name, value, f"{_PROMPT}, or a list of these"))


def several_conversations(messages: object) -> list[Conversation]:
    """The conversations of a call: one, or a list of them."""
    if is_conversation(messages):
        return [messages]
    if isinstance(messages, Sequence) and messages and all(map(is_conversation, messages)):
        return list(messages)
    raise check.wrong("messages", messages, f"{_CONVERSATION}, or a list of such lists")


def is_conversation(value: object) -> TypeGuard[Conversation]:
    """Whether `value` is a list of messages."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, (str, bytes))
        and len(value) > 0
        and all(isinstance(message, Mapping) for message in value)
    )


def params_for(count: int, params: object) -> list[SamplingParams]:
    """Parameters for `count` prompts: the same for all, or one each."""
    expected = f"a SamplingParams, a list of {count} of them, or None"
    if params is None:
        params = SamplingParams()
    if isinstance(params, SamplingParams):
        return [params] * count
    found = check.items("sampling_params", params, expected)
    each = [one for one in found if isinstance(one, SamplingParams)]
    if not len(each) == len(found) == count:
        raise check.wrong("sampling_params", params, expected)
    return each
