"""Decides which requests get evidence: what the request says, then what its workspace says."""

import re
from typing import Any

from starlette.types import Scope

from cragside.bootstrap import Container
from cragside.domain.errors import CragsideError, ValidationError
from cragside.domain.preferences import Prompts
from cragside.entrypoints.access import Grant, workspace_of
from cragside.entrypoints.proxy.prompts import Asked, CommandFinder
from cragside.entrypoints.proxy.request_body import parsed_if_bounded
from cragside.entrypoints.request_headers import wish_of

# Prompts without the command wait so many seconds at most for the settings of their workspace, and not at all while
# the settings cannot be read.
_PATIENCE = 0.5
_PAUSE = 5.0
# JSON may write any letter of the name as \uXXXX.
_NAMES_WORKSPACE = re.compile(rb'"workspace"|\\u00[67]')


class Asking:
    """Reads a request's command, `X-RAG`, the suffix of its model, and the workspace's setting.

    A `never` in the header or the setting wins. Otherwise each of the four suffices.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._settings = container.settings
        self._finder = CommandFinder(container.settings.command_prefix)
        self._ask_again = 0.0

    async def asked(self, grant: Grant, scope: Scope, body: bytes, *, suffixed: bool, welcome: bool) -> Asked | None:
        """The request if it gets evidence. `suffixed`: its model had the suffix. `welcome`: its page may ask.

        Raises `ValidationError` for an invalid `X-RAG`, and for a body with too many values that asks for evidence.
        """
        path, wish = scope["path"], wish_of(scope["headers"])
        if wish == "never":
            return None
        found = self._finder.with_command(path, body)
        if found is None and (wish == "always" or suffixed):
            found = self._finder.without_command(path, body)
        if found is None:
            return await self._by_setting(grant, scope, body) if welcome and grant.allows("read") else None
        return None if await self._wish_of(grant, scope, found.request) == "never" else found

    async def _by_setting(self, grant: Grant, scope: Scope, body: bytes) -> Asked | None:
        """The request if its workspace wants evidence in all prompts. Nothing about it is refused."""
        # Most bodies name no workspace and are not read.
        request = parsed_if_bounded(body) if _NAMES_WORKSPACE.search(body) else None
        if await self._wish_of(grant, scope, request or {}) != "always":
            return None
        try:
            found = self._finder.without_command(scope["path"], body, typed_last=True)
        except ValidationError:
            return None
        return found if found and len(found.question) <= self._settings.max_prompt_characters else None

    async def _wish_of(self, grant: Grant, scope: Scope, request: dict[str, Any]) -> Prompts:
        """The workspace's setting; `command` for a request that may not read the workspace."""
        try:
            reading = grant.narrowed("read")
            named, default = request.get("workspace"), self._settings.workspace
            workspace = workspace_of(reading, scope["headers"], named, default)
            return await self._setting(workspace)
        except CragsideError:
            return "command"

    async def _setting(self, workspace: str) -> Prompts:
        now = self._container.clock.monotonic()
        patience = _PATIENCE if now >= self._ask_again else 0.0
        preferred, outdated = await self._container.preferences.at_hand(workspace, seconds=patience)
        if outdated and patience:
            self._ask_again = self._container.clock.monotonic() + _PAUSE
        return preferred.prompts
