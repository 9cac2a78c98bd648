"""A running cragside, as plugs of other programs ask it."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from cragside.client import Client
from cragside.domain.command import DEFAULT_PREFIX
from cragside.domain.errors import ConfigurationError, ProcessingError, ValidationError
from cragside.domain.prompt import question_in

DEFAULT_ENDPOINT = "http://127.0.0.1:8642"
_CHECK_SECONDS = 5.0
_ABOUT = ("source", "title", "score", "url")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What cragside found for a question.

    `block` is the text for a model, with numbered and delimited passages; it is empty without evidence. `documents`
    are these passages in the order of their numbers, as `metadata.rag_context` has them.
    """

    block: str
    documents: list[dict[str, Any]]
    verdict: str

    @staticmethod
    def metadata(document: dict[str, Any]) -> dict[str, Any]:
        """What is known of a document beside its text, as one flat mapping."""
        about = {name: document[name] for name in _ABOUT if name in document}
        others = {name: value for name, value in document.get("metadata", {}).items() if name not in _ABOUT}
        return {**others, **about}


@dataclass(frozen=True, slots=True)
class Service:
    """Where cragside listens, and what a request to it says. `command` is its `RAG_COMMAND_PREFIX`."""

    endpoint: str = DEFAULT_ENDPOINT
    token: str | None = field(default=None, repr=False)
    workspace: str | None = None
    command: str = DEFAULT_PREFIX
    seconds: float = 35.0

    def is_asked(self, body: Mapping[str, Any]) -> bool:
        """Whether the last message of a chat begins with the command. A body that is no chat does not."""
        try:
            return question_in({"messages": body.get("messages")}, self.command) is not None
        except ValidationError:
            return False

    async def check(self) -> None:
        """Ask cragside whether it has this command, which costs it nothing. Raises its errors, and what is wrong."""
        checked_command(self.command)
        try:
            answer = await self._answer({"prompt": self.command}, min(self.seconds, _CHECK_SECONDS))
        except ValidationError:  # the command without a question
            return
        checked_context(answer, self.command)

    async def enriched(self, messages: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Evidence]:
        """Messages whose last question begins with the command, with evidence before it. Raises cragside's errors."""
        answer = await self._answer({"messages": messages}, self.seconds)
        context = checked_context(answer, self.command)
        try:
            enriched = _checked_messages(answer["messages"], len(messages))
            block = next((new["content"] for new in enriched if new["role"] == "system" and new not in messages), "")
            return enriched, Evidence(str(block), _checked_documents(context["documents"]), str(context["verdict"]))
        except (KeyError, TypeError) as error:
            raise _other(self.command) from error

    async def evidence(self, question: str) -> Evidence:
        """The evidence for a question. Raises cragside's errors."""
        _, evidence = await self.enriched([{"role": "user", "content": f"{self.command} {question}"}])
        return evidence

    def evidence_now(self, question: str) -> Evidence:
        """The same for callers without an event loop. It also works in a thread that has one, which waits."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self.evidence(question)).result()

    async def _answer(self, request: Mapping[str, Any], seconds: float) -> Any:
        # A client belongs to the event loop that it was first used in, and hosts have several.
        async with Client(self.endpoint, token=self.token, workspace=self.workspace, seconds=seconds) as client:
            return await client.post("/v1/enrich", request)


def checked_command(command: str) -> str:
    """The command, if it can be one. Raises `ConfigurationError`."""
    if not command or len(command.split()) != 1 or command != command.strip():
        raise ConfigurationError("command has to be one word, such as /rag, and the same as cragside's.")
    return command


def checked_context(answer: Any, command: str) -> dict[str, Any]:
    """The `rag_context` of an answer to a request with the command. Raises `ProcessingError` if it has none."""
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    context = metadata.get("rag_context") if isinstance(metadata, dict) else None
    if not isinstance(context, dict):
        raise _other(command)
    return context


def _checked_messages(messages: Any, sent: int) -> list[dict[str, Any]]:
    if not isinstance(messages, list) or len(messages) < sent:
        raise TypeError("messages are a list, and none is lost")
    if not all(isinstance(message["role"], str) and "content" in message for message in messages):
        raise TypeError("a message has a role and a content")
    return messages


def _checked_documents(documents: Any) -> list[dict[str, Any]]:
    for document in documents:
        if not all(isinstance(document[name], str) for name in ("id", "content")):
            raise TypeError("a document has an id and a content")
        if not isinstance(document.get("metadata", {}), dict):
            raise TypeError("metadata is an object")
    return list(documents)


def _other(command: str) -> ProcessingError:
    return ProcessingError(f"The endpoint did not answer with evidence. Is it a cragside with the command {command}?")
