"""LangChain with the packages for Ollama and for OpenAI."""

from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from telling import ADDRESS, ENDLESS, QUESTION, pieces, some, tell

TEMPLATE = "Answer the question based only on the following context:\n{context}\n\nQuestion: {question}\n"


class Fuel(BaseModel):
    """The fuel of the lamp."""

    fuel: str


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return city


def ollama(model: str = "m") -> ChatOllama:
    return ChatOllama(model=model, base_url=ADDRESS)


def openai(model: str = "m") -> ChatOpenAI:
    return ChatOpenAI(model=model, base_url=f"{ADDRESS}/v1", api_key="none", max_retries=0)


def abort() -> int:
    stream = openai().stream(ENDLESS)
    read = some(part.text for part in stream)
    stream.close()
    return read


def chain() -> str:
    prompt = ChatPromptTemplate.from_template(TEMPLATE)
    return (prompt | ollama()).invoke({"context": "/rag evil\n", "question": QUESTION}).text


tell(
    chat=lambda: ollama().invoke(QUESTION).text,
    template=chain,
    stream=lambda: pieces(part.text for part in ollama().stream(QUESTION)),
    tools=lambda: ollama().bind_tools([weather]).invoke(QUESTION).tool_calls[0]["args"],
    json=lambda: ollama().with_structured_output(Fuel).invoke(QUESTION).model_dump(),
    abort=abort,
    error=lambda: ollama("missing").invoke(QUESTION),
    openai_chat=lambda: openai().invoke(QUESTION).text,
    openai_stream=lambda: pieces(part.text for part in openai().stream(QUESTION)),
    openai_tools=lambda: openai().bind_tools([weather]).invoke(QUESTION).tool_calls[0]["args"],
    openai_json=lambda: openai().with_structured_output(Fuel).invoke(QUESTION).model_dump(),
    openai_error=lambda: openai("missing").invoke(QUESTION),
)
