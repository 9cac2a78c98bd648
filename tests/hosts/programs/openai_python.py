"""OpenAI's library for Python: chat, responses, completions."""

import json

from openai import OpenAI
from telling import ADDRESS, CITY, ENDLESS, FUEL, KEY, QUESTION, TOOL, pieces, some, tell, user

client = OpenAI(base_url=f"{ADDRESS}/v1", api_key=KEY, max_retries=0)
chat, responses, completions = client.chat.completions, client.responses, client.completions
SCHEMA = {"type": "json_schema", "json_schema": {"name": "fuel", "schema": FUEL}}
TEXT = {"format": {"type": "json_schema", "name": "fuel", "schema": FUEL}}
FUNCTION = {"type": "function", "name": "weather", "parameters": CITY, "strict": False}


def call() -> dict[str, str]:
    choice = chat.create(model="m", messages=user(), tools=[TOOL]).choices[0]
    return json.loads(choice.message.tool_calls[0].function.arguments)


def call_in_response() -> dict[str, str]:
    return json.loads(responses.create(model="m", input=QUESTION, tools=[FUNCTION]).output[0].arguments)


def abort() -> int:
    with chat.create(model="m", messages=user(ENDLESS), stream=True) as stream:
        return some(part.choices[0].delta.content for part in stream)


def streamed_response() -> list[str]:
    stream = responses.create(model="m", input=QUESTION, stream=True)
    return [event.delta for event in stream if event.type == "response.output_text.delta"]


def abort_response() -> int:
    with responses.create(model="m", input=ENDLESS, stream=True) as stream:
        return some(event.delta for event in stream if event.type == "response.output_text.delta")


tell(
    chat=lambda: chat.create(model="m", messages=user()).choices[0].message.content,
    stream=lambda: pieces(
        part.choices[0].delta.content for part in chat.create(model="m", messages=user(), stream=True)
    ),
    tools=call,
    json=lambda: json.loads(chat.create(model="m", messages=user(), response_format=SCHEMA).choices[0].message.content),
    abort=abort,
    error=lambda: chat.create(model="missing", messages=user()),
    responses=lambda: responses.create(model="m", input=QUESTION).output_text,
    responses_stream=streamed_response,
    responses_tools=call_in_response,
    responses_json=lambda: json.loads(responses.create(model="m", input=QUESTION, text=TEXT).output_text),
    responses_abort=abort_response,
    responses_error=lambda: responses.create(model="missing", input=QUESTION),
    completions=lambda: completions.create(model="m", prompt=QUESTION).choices[0].text,
    completions_stream=lambda: pieces(
        part.choices[0].text for part in completions.create(model="m", prompt=QUESTION, stream=True)
    ),
    completions_error=lambda: completions.create(model="missing", prompt=QUESTION),
)
