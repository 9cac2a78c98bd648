"""
title: cragside
description: Messages that begin with /rag get graded, cited evidence.
version: 1.0.0
"""  # Open WebUI reads this header. Paste the file into Admin Panel, Functions. See docs/plugins.md.

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from cragside.domain.errors import CragsideError
from cragside.domain.query import DEFAULT_PREFIX
from cragside.plugins.service import DEFAULT_ENDPOINT, Service

_log = logging.getLogger("cragside.plugins")
_NAME_CHARACTERS = 200

Emitter = Callable[[dict[str, Any]], Awaitable[None]]


class Filter:
    """A filter of Open WebUI. It shows what it does as a status, and the evidence as sources.

    On a failure the message goes on unchanged, and the status says why.
    """

    class Valves(BaseModel):
        """The settings of an administrator."""

        priority: int = Field(0, description="Filters with a lower priority come first.")
        endpoint: str = Field(DEFAULT_ENDPOINT, description="Where `cragside serve` listens.")
        token: str = Field("", description="A token of cragside.", json_schema_extra={"input": {"type": "password"}})
        workspace: str = Field("", description="The knowledge base; cragside's default if empty.")
        command: str = Field(DEFAULT_PREFIX, description="The command, as in cragside's RAG_COMMAND_PREFIX.")

    def __init__(self) -> None:
        self.valves = self.Valves()

    async def inlet(
        self,
        body: dict[str, Any],
        __event_emitter__: Emitter | None = None,
        __user__: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The chat with evidence, if its last message begins with the command."""
        valves = self.valves
        emit = _quietly(__event_emitter__)
        service = Service(valves.endpoint, valves.token or None, valves.workspace or None, valves.command)
        if not service.is_asked(body):
            return body
        await emit(_status("Looking for evidence", done=False))
        try:
            enriched, evidence = await service.enriched(body["messages"], user=(__user__ or {}).get("id"))
        except CragsideError as error:
            _log.error("The message goes on without evidence: %s", error.message)  # it has the endpoint's address
            await emit(_status(f"No evidence ({error.code})"))
            return body
        for source in _sources(evidence.documents):
            await emit({"type": "source", "data": source})
        number = len(evidence.documents)
        await emit(_status(f"{number} passage{'s' * (number != 1)} of evidence ({_line(evidence.verdict)})"))
        return {**body, "messages": enriched}


def _quietly(emitter: Emitter | None) -> Emitter:
    """An emitter that never fails: a chat does not end because a browser is gone."""

    async def emit(event: dict[str, Any]) -> None:
        try:
            if emitter is not None:
                await emitter(event)
        except Exception as error:  # whatever the host raises
            _log.debug("An event was not shown: %s", type(error).__name__)

    return emit


def _status(description: str, *, done: bool = True) -> dict[str, Any]:
    return {"type": "status", "data": {"description": description, "done": done}}


def _sources(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a source for each passage. Open WebUI numbers sources by their ids, so that each has its own."""
    sources = []
    for number, document in enumerate(documents, start=1):
        url = str(document.get("url") or "")
        page = url if url.startswith(("http://", "https://")) and url.isprintable() and " " not in url else ""
        name = _line(document.get("title") or document.get("metadata", {}).get("filename") or f"Passage {number}")
        identity = f"{page}#passage-{number}" if page else document["id"]
        sources.append(
            {
                "source": {"id": identity, "name": name, **({"url": page} if page else {})},
                "document": [document["content"]],
                "metadata": [{"source": identity, "name": name}],
                # A similarity search grades nothing: its passages have no score.
                "distances": [document.get("similarity") if document.get("score") is None else document["score"]],
            }
        )
    return sources


def _line(name: Any) -> str:
    """A name on one line."""
    return " ".join("".join(each if each.isprintable() else " " for each in str(name)).split())[:_NAME_CHARACTERS]
