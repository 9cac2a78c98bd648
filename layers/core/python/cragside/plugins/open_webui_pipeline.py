"""
title: cragside
description: Messages that begin with /rag get graded, cited evidence.
version: 1.0.0
"""  # The server of pipelines reads this header. Copy the file into its folder of pipelines. See docs/plugins.md.

import logging
import os
from typing import Any

from pydantic import BaseModel, Field

from cragside.domain.errors import CragsideError
from cragside.domain.query import DEFAULT_PREFIX
from cragside.plugins.service import DEFAULT_ENDPOINT, Service

_log = logging.getLogger("cragside.plugins")


class Pipeline:
    """A filter for Open WebUI's server of pipelines. On a failure the message goes on unchanged, and the log says why.

    `CRAGSIDE_ENDPOINT` and `RAG_API_TOKEN` of the environment say where cragside is. They are no valves, because that
    server shows and changes valves without asking for its key: a valve would give the token away.
    """

    class Valves(BaseModel):
        """The settings of an administrator. The first two are the server's."""

        pipelines: list[str] = Field(["*"], description="The models that get evidence; * for all.")
        priority: int = Field(0, description="Filters with a lower priority come first.")
        workspace: str = Field("", description="The knowledge base; cragside's default if empty.")
        command: str = Field(DEFAULT_PREFIX, description="The command, as in cragside's RAG_COMMAND_PREFIX.")

    def __init__(self) -> None:
        self.type, self.name = "filter", "cragside"
        self.valves = self.Valves()

    async def on_startup(self) -> None:
        """Log what is wrong with the address, the token or the command."""
        try:
            await self._service().check()
        except CragsideError as error:
            _log.error("Messages will go on without evidence: %s", error.message)

    async def on_valves_updated(self) -> None:
        """The same for new valves."""
        await self.on_startup()

    async def inlet(self, body: dict[str, Any], user: dict[str, Any] | None = None) -> dict[str, Any]:
        """The chat with evidence, if its last message begins with the command."""
        service = self._service()
        if not service.is_asked(body):
            return body
        try:
            enriched, _ = await service.enriched(body["messages"], user=(user or {}).get("id"))
        except CragsideError as error:
            _log.error("The message goes on without evidence: %s", error.message)  # it has the endpoint's address
            return body
        return {**body, "messages": enriched}

    def _service(self) -> Service:
        endpoint = os.environ.get("CRAGSIDE_ENDPOINT") or DEFAULT_ENDPOINT
        token = os.environ.get("RAG_API_TOKEN") or None
        return Service(endpoint, token, self.valves.workspace or None, self.valves.command)
