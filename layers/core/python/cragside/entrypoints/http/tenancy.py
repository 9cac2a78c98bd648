"""Which workspace a request may use."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import Query, Request

from cragside.application.allowance import allow
from cragside.domain.errors import Unauthorized
from cragside.entrypoints.access import Grant, workspace_of
from cragside.entrypoints.http.route_scopes import SCOPES
from cragside.entrypoints.keyring import Keys


class Access:
    """Holds requests against the tokens, the scopes that their routes need, and the workspaces that the tokens open."""

    def __init__(self, keys: Keys, *, default: str) -> None:
        self._keys = keys
        self._default = default

    async def authorise(self, request: Request) -> None:
        """Let the request in.

        Raises `Unauthorized` without a token that is known, and `Forbidden` for one without the route's scope.
        """
        self._grant(request)

    def workspace(self, request: Request, named: object = None) -> str:
        """The workspace that a request may use; `named` is what it calls it; else `?workspace=`. See `workspace_of`."""
        if named is None:
            named = request.query_params.get("workspace")
        chosen = workspace_of(self._grant(request), request.scope["headers"], named, self._default)
        request.state.workspace = chosen
        allow(self._grant(request).allowance(chosen))
        return chosen

    async def asked(
        self,
        request: Request,
        workspace: Annotated[str | None, Query(description="The workspace; the default without it.")] = None,
    ) -> str:
        """`workspace` for routes that are told it in the query: `Annotated[str, Depends(access.asked)]`."""
        return self.workspace(request, workspace)

    @staticmethod
    def note(request: Request, documents: Iterable[str]) -> None:
        """Have the audit log name these documents, by their ids."""
        request.state.documents = [*getattr(request.state, "documents", ()), *documents]

    def _grant(self, request: Request) -> Grant:
        # Once for a request: a token that is revoked between two questions would let half of it in.
        grant: Grant | None = getattr(request.state, "narrowed_grant", None)
        if grant is None:
            known = getattr(request.state, "grant", None) or self._keys.keyring().grant(request.scope["headers"])
            if known is None:
                raise Unauthorized("Send a valid token as Authorization: Bearer or as X-API-Key.")
            request.state.grant = known
            grant = known.narrowed(SCOPES[f"{request.method} {request.scope['route'].path}"])
            request.state.narrowed_grant = grant
        return grant
