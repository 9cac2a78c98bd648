"""Audit events: who did what, when, and with which outcome. Never texts of documents, questions or tokens."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from starlette.types import Message, Scope, Send

from cragside.domain.tokens import TokenScope
from cragside.entrypoints.access import Grant

if TYPE_CHECKING:
    from cragside.bootstrap import Container

_LONGEST = 200
_MOST_DOCUMENTS = 1000


class Audit:
    """Writes events to the container's audit log, if it has one. Raises `ConfigurationError` if it is not writable."""

    def __init__(self, container: "Container") -> None:
        self._log = container.audit_log
        if self._log is not None:
            self._log.check()

    @property
    def wanted(self) -> bool:
        """Tell if events are written."""
        return self._log is not None

    def note(
        self,
        scope: Scope,
        action: str,
        status: int,
        *,
        grant: Grant | None = None,
        scopes: Sequence[TokenScope] = (),
        workspace: str | None = None,
        documents: Sequence[str] = (),
    ) -> None:
        """Write the outcome of a request. `who` is the token with one of the scopes that opens the workspace."""
        if self._log is None:
            return
        who = grant.bearer(workspace, *scopes) if grant is not None else None
        route = getattr(scope.get("route"), "path", None) or scope["path"]
        event = {
            "at": _now(),
            "who": who.id if who else "anonymous",
            "name": who.name if who else "anonymous",
            "from": (scope.get("client") or ("",))[0],
            "action": action,
            "outcome": _outcome(status),
            "status": status,
            "route": _cut(f"{scope['method']} {route}"),
            "workspace": workspace,
            "documents": [_cut(each) for each in documents[:_MOST_DOCUMENTS]],
        }
        self._log.write(event)

    def note_command(self, action: str, token_id: str, token_name: str) -> None:
        """Write that a command made or changed a token."""
        if self._log is None:
            return
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "command line"
        event = {"at": _now(), "who": "command line", "name": user, "from": "", "action": action, "outcome": "ok"}
        self._log.write({**event, "token": token_id, "token_name": token_name})


class Sent:
    """Wraps `send` and records the status: 500 until the response starts."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 500

    async def __call__(self, message: Message) -> None:
        """ASGI's `send`."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _outcome(status: int) -> str:
    if status in (401, 403):
        return "denied"
    return "ok" if status < 400 else "failed"


def _cut(text: str) -> str:
    return text[:_LONGEST]
