"""The committed vectors `tests/vectors/templates.json`: chat templates rendered by Jinja2.

Jinja2 is set up as transformers sets it up. Each template uses things that templates of published
models use; a case is a template, what it is given, and the text. Run as a script, this module
writes the file anew.
"""

from __future__ import annotations

import json
from pathlib import Path

from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

FILE = Path(__file__).parents[1] / "vectors" / "templates.json"

TALK = [
    {"role": "system", "content": "  Be brief.\n"},
    {"role": "user", "content": "Héllo <world> & 'you' \"there\" 你好 😀"},
    {"role": "assistant", "content": "<think>hm\nwell</think>\n\nHi!  "},
    {"role": "user", "content": "1\n2\n\n3"},
]
QUESTION = [{"role": "user", "content": "What is 2+2?"}]
PARTS = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}],
    }
]
CALLS = [
    {"role": "user", "content": "Weather in Köln?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "arguments": {"city": "Köln", "days": 3, "deep": {"a": [1, 2.5, None, True]}},
                },
            }
        ],
    },
    {"role": "tool", "content": '{"temp": 7}'},
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tells the <weather> & 'more'.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nDefault.<|im_end|>\\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

BLOCKS = """{# Comments vanish, blocks leave no lines. #}
{% if messages[0].role == 'system' %}
    {% set system = messages[0].content | trim %}
    {% set rest = messages[1:] %}
{% else %}
    {% set system = none %}
    {% set rest = messages %}
{% endif %}
  {%- if system is not none and system %}
[SYS] {{ system }} [/SYS]
  {% endif %}
{% for m in rest %}
    {{ loop.index }}/{{ loop.length }} {{ m.role | upper }}: {{ m.content | trim }}
    {% if not loop.last %}
---
    {% endif %}
{% endfor %}
{{ bos_token }}|{{ eos_token }}
"""

ALTERNATE = """{{- bos_token }}
{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {%- if message['role'] == 'user' %}
        {{- ' [INST] ' + message['content'] | trim + ' [/INST]' }}
    {%- elif message['role'] == 'assistant' %}
        {{- ' ' ~ message['content'] | trim ~ eos_token }}
    {%- endif %}
{%- endfor %}"""

REASONING = """{%- set ns = namespace(last=-1, n=0) %}
{%- for message in messages[::-1] %}
    {%- set index = messages | length - 1 - loop.index0 %}
    {%- if ns.last < 0 and message.role == 'user' and message.content is string %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and '</think>' in content %}
        {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1] %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {{- '(' + thought.replace('\\n', ' ').strip() + ')' }}
    {%- endif %}
    {%- set ns.n = ns.n + content.split() | length %}
    {{- message.role.title() + ': ' + content + '\\n' }}
{%- endfor %}
{{- ns.last ~ ' ' ~ ns.n }}
{%- if add_generation_prompt %}{{ '\\nAssistant:' }}{% endif %}"""

TOOLING = """{%- if tools %}
    {{- 'Tools:' }}
    {%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\\n' + tools | map(attribute='function') | map(attribute='name') | join(', ') }}
{%- endif %}
{%- for message in messages %}
    {%- if message.tool_calls is defined and message.tool_calls %}
        {%- for call in message.tool_calls %}
            {%- set call = call.function if call.function is defined else call %}
            {{- '\\n' + call.name + '(' }}
            {%- for key, value in call.arguments.items() %}
                {{- key + '=' + (value | string if value is not mapping else value | tojson) }}
                {%- if not loop.last %}{{- ', ' }}{%- endif %}
            {%- endfor %}
            {{- ')\\n' }}{{- call.arguments | tojson(indent=2) }}
        {%- endfor %}
    {%- elif message.content is string %}
        {{- '\\n' + message.role + ': ' + message.content }}
    {%- endif %}
{%- endfor %}"""

MACROS = """{%- macro text(content) -%}
    {%- if content is string -%}
        {{- content -}}
    {%- elif content is iterable and content is not mapping -%}
        {%- for part in content if part.type == 'text' -%}{{- part.text -}}{%- endfor -%}
    {%- else -%}
        {{- raise_exception('unknown content') -}}
    {%- endif -%}
{%- endmacro -%}
{%- for message in messages -%}
    {%- if loop.index > 3 %}{% break %}{% endif -%}
    {%- if message.role == 'system' %}{% continue %}{% endif -%}
    <{{ message['role'] }}>{{ text(message.content) }}</{{ message['role'] }}>
{% endfor -%}"""

FILTERS = """{% set users = messages | selectattr('role', 'equalto', 'user') | list %}
{{ users | length }} {{ (users | first).content[:3] }} {{ users[-1].content | length }}
{{ messages | map(attribute='role') | unique | join('|') }}
{{ missing | default('none') }} {{ missing is defined }} {{ '' | default('empty', true) }}
{{ [3, 1, 2] | sort | join }} {{ [1, 2, 3] | sum }} {{ range(3) | list }}
{{ 'a-b-c'.split('-') | last }} {{ 'x' * 3 }} {{ 7 // 2 }} {{ 7 % 3 }} {{ 2 ** 5 }} {{ 7 / 2 }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith('x') }} {{ 'b' in 'abc' }} {{ 1 in [1] }}
{{ {'a': 1, 'b': none} | tojson }} {{ "tab\\t\\u00e9\\\\" | tojson }} {{ true | tojson }}
{{ {'b': 1, 'a': 2}.items() | list | length }} {{ {'k': 'v'}.get('k') }} {{ {}.get('k', 'd') }}
{{ none }} {{ true }} {{ 1.0 }} {{ [1, 'a'] }} {{ 'x' if false }}|
{{ messages | map(attribute='content') | reject('none') | list | length }}
{{ 'One Two'.lower().upper().capitalize() }} {{ ' a '.strip() }}{{ 'a,b'.replace(',', ';') }}
{{ not tools }} {{ tools is none }} {{ messages is sequence }} {{ messages[0] is mapping }}
{{ 'a\\nb' | indent(2) }} {{ 'q"q' }} {{ '<&>' | trim }} {{ ('a', 'b') | join('+') }}
"""

TEMPLATES = {
    "chatml": CHATML,
    "blocks": BLOCKS,
    "alternate": ALTERNATE,
    "reasoning": REASONING,
    "tooling": TOOLING,
    "macros": MACROS,
    "filters": FILTERS,
}

# Template, messages, tools, whether the answer is begun.
CASES = [
    ("chatml", TALK, None, True),
    ("chatml", QUESTION, None, False),
    ("blocks", TALK, None, True),
    ("blocks", QUESTION, None, True),
    ("alternate", TALK[1:], None, True),
    ("reasoning", TALK, None, True),
    ("reasoning", QUESTION, None, False),
    ("tooling", CALLS, TOOLS, True),
    ("tooling", TALK, None, True),
    ("macros", TALK, None, True),
    ("macros", PARTS, None, True),
    ("filters", TALK, None, True),
]


def environment() -> ImmutableSandboxedEnvironment:
    """Jinja2 as transformers sets it up."""
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    made.filters["tojson"] = lambda value, indent=None: json.dumps(
        value, ensure_ascii=False, indent=indent
    )

    def raise_exception(message: str) -> None:
        raise ValueError(message)

    made.globals["raise_exception"] = raise_exception
    return made


def vectors() -> dict:
    """The content of the file."""
    made = environment()
    cases = []
    for name, messages, tools, begin in CASES:
        text = made.from_string(TEMPLATES[name]).render(
            messages=messages,
            tools=tools,
            add_generation_prompt=begin,
            bos_token="<|im_start|>",
            eos_token="<|im_end|>",
        )
        cases.append(
            {
                "template": name,
                "messages": messages,
                "tools": tools,
                "add_generation_prompt": begin,
                "text": text,
            }
        )
    return {"templates": TEMPLATES, "cases": cases}


if __name__ == "__main__":
    FILE.write_text(json.dumps(vectors(), indent=1) + "\n")
