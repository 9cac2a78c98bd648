"""Which workspace a request may use."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from fastapi import Query, Request

from cragside.domain.errors import Unauthorized
from cragside.entrypoints.access import Grant, Keyring, workspace_of


class Access:
    """Holds requests against the tokens and the workspaces that they open.

    `token` is asked at each request for the one that opens all workspaces, None for none.
    """

    def __init__(self, token: Callable[[], str | None], bound: Mapping[str, Sequence[str]], *, default: str) -> None:
        self._token = token
        self._bound = bound
        self._default = default
        self._keys: tuple[str | None, Keyring] | None = None

    async def authorise(self, request: Request) -> None:
        """Let the request in. Raises `Unauthorized` without a token that is known."""
        self._grant(request)

    def workspace(self, request: Request, named: object = None) -> str:
        """The workspace that a request may use; `named` is what it calls it; else `?workspace=`. See `workspace_of`."""
        if named is None:
            named = request.query_params.get("workspace")
        return workspace_of(self._grant(request), request.scope["headers"], named, self._default)

    async def asked(
        self,
        request: Request,
        workspace: Annotated[str | None, Query(description="The workspace; the default without it.")] = None,
    ) -> str:
        """`workspace` for routes that are told it in the query: `Annotated[str, Depends(access.asked)]`."""
        return self.workspace(request, workspace)

    def _grant(self, request: Request) -> Grant:
        # Once for a request: a secret that is exchanged between two questions would let half of it in.
        grant: Grant | None = getattr(request.state, "grant", None)
        if grant is None:
            grant = self._keyring(self._token()).grant(request.scope["headers"])
            if grant is None:
                raise Unauthorized("Send the token as Authorization: Bearer or as X-API-Key.")
            request.state.grant = grant
        return grant

    def _keyring(self, token: str | None) -> Keyring:
        if self._keys is None or self._keys[0] != token:
            self._keys = token, Keyring(token, self._bound)
        return self._keys[1]
