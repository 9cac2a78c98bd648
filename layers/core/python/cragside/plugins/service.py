"""A running cragside, as plugs of other programs ask it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from cragside.client import Client
from cragside.domain.command import DEFAULT_PREFIX
from cragside.domain.errors import ProcessingError

DEFAULT_ENDPOINT = "http://127.0.0.1:8642"


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
        about = {name: document[name] for name in ("source", "title", "score", "url") if name in document}
        return {**document.get("metadata", {}), **about}


@dataclass(frozen=True, slots=True)
class Service:
    """Where cragside listens, and what a request to it says. `command` is its `RAG_COMMAND_PREFIX`."""

    endpoint: str = DEFAULT_ENDPOINT
    token: str | None = field(default=None, repr=False)
    workspace: str | None = None
    command: str = DEFAULT_PREFIX
    seconds: float = 35.0

    async def enriched(self, messages: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Evidence]:
        """Messages whose last question begins with the command, with evidence before it. Raises cragside's errors."""
        # A client belongs to the event loop that it was first used in, and hosts have several.
        async with Client(self.endpoint, token=self.token, workspace=self.workspace, seconds=self.seconds) as client:
            answer = await client.post("/v1/enrich", {"messages": messages})
        try:
            context, enriched = answer["metadata"]["rag_context"], answer["messages"]
            block = next((new["content"] for new in enriched if new["role"] == "system" and new not in messages), "")
            return enriched, Evidence(block, context["documents"], context["verdict"])
        except (KeyError, TypeError) as error:
            message = f"The endpoint did not answer with evidence. Is it a cragside with the command {self.command}?"
            raise ProcessingError(message) from error

    async def evidence(self, question: str) -> Evidence:
        """The evidence for a question. Raises cragside's errors."""
        _, evidence = await self.enriched([{"role": "user", "content": f"{self.command} {question}"}])
        return evidence

    def evidence_now(self, question: str) -> Evidence:
        """The same for callers without an event loop. It also works in a thread that has one, which waits."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self.evidence(question)).result()
