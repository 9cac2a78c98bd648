"""Asks a running cragside for other programs."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from cragside.client import ALWAYS, Client
from cragside.domain.errors import ConfigurationError, ProcessingError, ValidationError
from cragside.domain.prompt import question_in
from cragside.domain.query import DEFAULT_PREFIX

DEFAULT_ENDPOINT = "http://127.0.0.1:8642"
_CHECK_SECONDS = 5.0
# Far beyond every score. No comparison with one that is not a number is true.
_MOST = 1e9
_ABOUT = ("source", "title", "score", "url")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence that cragside found for a question.

    `block` is the text for a model, with numbered and delimited passages; it is empty without evidence. `documents`
    are these passages in the order of their numbers, as `metadata.rag_context` has them.
    """

    block: str
    documents: list[dict[str, Any]]
    verdict: str


@dataclass(frozen=True, slots=True)
class Service:
    """Reaches a cragside: where it listens, and what a request to it says.

    `command` is its `RAG_COMMAND_PREFIX`, for messages that a user writes; `evidence` needs none.
    """

    endpoint: str = DEFAULT_ENDPOINT
    token: str | None = field(default=None, repr=False)
    workspace: str | None = None
    command: str = DEFAULT_PREFIX
    seconds: float = 35.0

    def is_asked(self, body: Mapping[str, Any]) -> bool:
        """Tell if the last message of a chat begins with the command. A body that is no chat does not."""
        try:
            return question_in({"messages": body.get("messages")}, self.command) is not None
        except ValidationError:
            return False

    async def check(self) -> None:
        """Ask cragside if it has this command, without a search. Raises its errors, and what is wrong."""
        checked_command(self.command)
        try:
            answer = await self._answer({"prompt": self.command}, min(self.seconds, _CHECK_SECONDS))
        except ValidationError:  # the command without a question
            return
        checked_context(answer, self.command)

    async def enriched(
        self, messages: list[dict[str, Any]], *, user: object = None
    ) -> tuple[list[dict[str, Any]], Evidence]:
        """Messages whose last question begins with the command, with evidence before it. Raises cragside's errors.

        `user` is the host's id of the user, whose exchanges alone memory adds. Anything but a text names nobody.
        """
        return await self._enriched(messages, {}, {"user_id": user} if isinstance(user, str) else {})

    async def evidence(self, question: str) -> Evidence:
        """Return the evidence for a question, which needs no command. Raises cragside's errors."""
        _, evidence = await self._enriched([{"role": "user", "content": question}], ALWAYS)
        return evidence

    def evidence_now(self, question: str) -> Evidence:
        """Return the same as `evidence`, for callers without an event loop. A thread that has one waits for it."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self.evidence(question)).result()

    async def _enriched(
        self,
        messages: list[dict[str, Any]],
        headers: Mapping[str, str],
        about: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[list[dict[str, Any]], Evidence]:
        request = {"messages": messages, **about}
        answer = checked_answer(await self._answer(request, self.seconds, headers), request, self.command)
        enriched, context = answer["messages"], answer["metadata"]["rag_context"]
        block = next((new.get("content") for new in enriched if new["role"] == "system" and new not in messages), "")
        return enriched, Evidence(str(block or ""), context["documents"], context["verdict"])

    async def _answer(
        self, request: Mapping[str, Any], seconds: float, headers: Mapping[str, str] | None = None
    ) -> Any:
        # A client belongs to the event loop that it was first used in, and hosts have several.
        async with Client(self.endpoint, token=self.token, workspace=self.workspace, seconds=seconds) as client:
            return await client.post("/v1/enrich", request, headers=headers)


def metadata_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a document beside its text, as one flat mapping."""
    about = {name: document[name] for name in _ABOUT if name in document}
    others = {name: value for name, value in document.get("metadata", {}).items() if name not in _ABOUT}
    return {**others, **about}


def checked_command(command: str) -> str:
    """Return the command, if it can be one. Raises `ConfigurationError`."""
    if not command or len(command.split()) != 1 or command != command.strip():
        raise ConfigurationError("command has to be one word, such as /rag, and the same as cragside's.")
    return command


def checked_answer(answer: Any, request: Mapping[str, Any], command: str) -> dict[str, Any]:
    """An enriched request. Raises `ProcessingError` for an answer that a host cannot use in place of its request."""
    context = checked_context(answer, command)
    messages, prompt = answer.get("messages"), answer.get("prompt")
    if request.get("messages") is None:
        whole = isinstance(prompt, str)
    else:
        whole = _are_messages(messages) and len(messages) >= len(request["messages"])
    if not (whole and _are_documents(context.get("documents")) and isinstance(context.get("verdict"), str)):
        raise _other(command)
    return dict(answer)


def checked_context(answer: Any, command: str) -> dict[str, Any]:
    """Return the `rag_context` of an answer to a request with the command. Raises `ProcessingError` if it has none."""
    metadata = answer.get("metadata") if isinstance(answer, dict) else None
    context = metadata.get("rag_context") if isinstance(metadata, dict) else None
    if not isinstance(context, dict):
        raise _other(command)
    return context


def _are_messages(messages: Any) -> bool:
    # A message that calls tools may have no content.
    return isinstance(messages, list) and all(
        isinstance(message, dict)
        and isinstance(message.get("role"), str)
        and isinstance(message.get("content"), str | list | None)
        for message in messages
    )


def _are_documents(documents: Any) -> bool:
    return isinstance(documents, list) and all(
        isinstance(document, dict)
        and all(isinstance(document.get(name), str) for name in ("id", "content"))
        and all(isinstance(document.get(name), str | None) for name in ("source", "title", "url"))
        and all(_is_score(document.get(name)) for name in ("score", "similarity"))
        and isinstance(document.get("metadata", {}), dict)
        for document in documents
    )


def _is_score(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        return False
    return value is None or abs(value) <= _MOST


def _other(command: str) -> ProcessingError:
    return ProcessingError(f"The endpoint did not answer with evidence. Is it a cragside with the command {command}?")
