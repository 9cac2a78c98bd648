"""LlamaIndex with its package for Ollama."""

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.ollama import Ollama
from pydantic import BaseModel
from telling import ADDRESS, ENDLESS, QUESTION, pieces, some, tell


class Fuel(BaseModel):
    """The fuel of the lamp."""

    fuel: str


def weather(city: str) -> str:
    """Tell the weather."""
    return city


def model(name: str = "m") -> Ollama:
    return Ollama(model=name, base_url=ADDRESS, context_window=8192)


def messages(text: str = QUESTION) -> list[ChatMessage]:
    return [ChatMessage(role="user", content=text)]


def call() -> dict[str, str]:
    answer = model().chat_with_tools([FunctionTool.from_defaults(weather)], user_msg=QUESTION)
    return model().get_tool_calls_from_response(answer)[0].tool_kwargs


def abort() -> int:
    stream = model().stream_chat(messages(ENDLESS))
    read = some(part.delta for part in stream)
    stream.close()
    return read


tell(
    chat=lambda: model().chat(messages()).message.content,
    complete=lambda: model().complete(QUESTION).text,
    stream=lambda: pieces(part.delta for part in model().stream_chat(messages())),
    tools=call,
    json=lambda: model().as_structured_llm(Fuel).chat(messages()).raw.model_dump(),
    abort=abort,
    error=lambda: model("missing").chat(messages()),
)
