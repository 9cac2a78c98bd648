"""Ollama's library for Python."""

import json

import ollama
from telling import ADDRESS, ENDLESS, FUEL, QUESTION, TOOL, pieces, some, tell, user

client = ollama.Client(host=ADDRESS)


def call() -> dict[str, str]:
    return dict(client.chat("m", user(), tools=[TOOL]).message.tool_calls[0].function.arguments)


def abort() -> int:
    stream = client.chat("m", user(ENDLESS), stream=True)
    read = some(part.message.content for part in stream)
    stream.close()
    return read


tell(
    chat=lambda: client.chat("m", user()).message.content,
    generate=lambda: client.generate("m", QUESTION).response,
    stream=lambda: pieces(part.message.content for part in client.chat("m", user(), stream=True)),
    tools=call,
    json=lambda: json.loads(client.chat("m", user(), format=FUEL).message.content),
    abort=abort,
    error=lambda: client.chat("missing", user()),
)
