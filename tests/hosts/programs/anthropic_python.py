"""Anthropic's library for Python."""

from anthropic import Anthropic
from telling import ADDRESS, CITY, ENDLESS, pieces, some, tell, user

client = Anthropic(base_url=ADDRESS, api_key="none", max_retries=0)
TOOL = {"name": "weather", "description": "Tells the weather.", "input_schema": CITY}


def stream() -> list[str]:
    with client.messages.stream(model="m", max_tokens=64, messages=user()) as events:
        return pieces(events.text_stream)


def abort() -> int:
    with client.messages.stream(model="m", max_tokens=64, messages=user(ENDLESS)) as events:
        return some(events.text_stream)


tell(
    chat=lambda: client.messages.create(model="m", max_tokens=64, messages=user()).content[0].text,
    stream=stream,
    tools=lambda: client.messages.create(model="m", max_tokens=64, messages=user(), tools=[TOOL]).content[0].input,
    abort=abort,
    error=lambda: client.messages.create(model="missing", max_tokens=64, messages=user()),
)
