"""LiteLLM's library: its three ways to Ollama."""

import json
from typing import Any

import litellm
from telling import ADDRESS, ENDLESS, FUEL, TOOL, pieces, some, tell, user

SCHEMA = {"type": "json_schema", "json_schema": {"name": "fuel", "schema": FUEL}}


def ask(model: str = "ollama_chat/m", messages: Any = None, **how: Any) -> Any:
    return litellm.completion(model=model, messages=messages or user(), api_base=ADDRESS, max_retries=0, **how)


def openai(**how: Any) -> Any:
    return litellm.completion(
        model="openai/m", messages=user(), api_base=f"{ADDRESS}/v1", api_key="none", max_retries=0, **how
    )


def abort() -> int:
    # Its streams have no way to close: this one ends with the program.
    return some(part.choices[0].delta.content for part in ask(messages=user(ENDLESS), stream=True))


tell(
    chat=lambda: ask().choices[0].message.content,
    template=lambda: ask("ollama/m").choices[0].message.content,
    openai_chat=lambda: openai().choices[0].message.content,
    stream=lambda: pieces(part.choices[0].delta.content for part in ask(stream=True)),
    openai_stream=lambda: pieces(part.choices[0].delta.content for part in openai(stream=True)),
    tools=lambda: json.loads(ask(tools=[TOOL]).choices[0].message.tool_calls[0].function.arguments),
    json=lambda: json.loads(ask(response_format=SCHEMA).choices[0].message.content),
    abort=abort,
    error=lambda: ask("ollama_chat/missing"),
)
