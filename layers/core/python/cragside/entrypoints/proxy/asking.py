"""Decides which requests get evidence: what the request says, then what its workspace says.

That costs next to nothing for requests without the command.
"""

import re
from dataclasses import replace
from typing import Any

from starlette.types import Scope

from cragside.bootstrap import Container
from cragside.domain.command import asks_why, question_of
from cragside.domain.errors import CragsideError, ValidationError
from cragside.domain.preferences import Prompts
from cragside.entrypoints.access import Grant, workspace_of
from cragside.entrypoints.http.body_limit import bounded
from cragside.entrypoints.proxy.prompts import Asked, is_no_users, is_refused_by_ollama
from cragside.entrypoints.proxy.request_body import parsed, parsed_if_bounded
from cragside.entrypoints.proxy.shapes import in_one_form, place_in
from cragside.entrypoints.rag_headers import wish_of

# Prompts without the command wait so many seconds at most for the settings of their workspace, and not at all while
# the settings cannot be read.
_PATIENCE = 0.5
_PAUSE = 5.0
# JSON may write any letter of the name as \uXXXX.
_NAMES_WORKSPACE = re.compile(rb'"workspace"|\\u00[67]')
# Prefixes that JSON and case folding leave unchanged. k and s have relatives outside ASCII (KELVIN SIGN, LONG S).
_PLAIN_PREFIX = re.compile(r"[0-9a-jl-rt-z!#$%&()*+,./:;=?@^_`{|}~-]+", re.IGNORECASE | re.ASCII)


class Asking:
    """Reads a request's command, `X-RAG`, the suffix of its model, and the workspace's setting.

    A `never` in the header or the setting wins. Otherwise each of the four suffices.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._settings = container.settings
        self._prefix = prefix = container.settings.command_prefix
        self._needle = prefix.lower().encode() if _PLAIN_PREFIX.fullmatch(prefix) else None
        self._ask_again = 0.0

    async def asked(self, grant: Grant, scope: Scope, body: bytes, *, suffixed: bool, welcome: bool) -> Asked | None:
        """The request if it gets evidence. `suffixed`: its model had the suffix. `welcome`: its page may ask.

        None for a request that Ollama refuses: the client gets Ollama's own message. Raises `ValidationError` for an
        invalid `X-RAG`, and for a body with too many keys or values that asks for evidence.
        """
        path, wish = scope["path"], wish_of(scope["headers"])
        if wish == "never":
            return None
        found = self._with_command(path, body)
        if found is None and (wish == "always" or suffixed):
            found = self._without_command(path, body)
        if found is None:
            return await self._by_setting(grant, scope, body) if welcome and grant.allows("read") else None
        return None if await self._setting(grant, scope, found.request) == "never" else found

    def _with_command(self, path: str, body: bytes) -> Asked | None:
        """The request, if what its user typed last begins with the command."""
        # JSON may write any character as \uXXXX, and a slash as \/.
        certain = self._needle is not None and self._needle in body.lower()
        if not (certain or self._needle is None or b"\\u" in body or b"\\/" in body):
            return None
        try:
            bounded(body)
        except ValidationError:
            if certain:
                raise
            return None
        found = self._typed(path, body)
        if found is None:
            return None
        text = found.place.typed.text
        if (question := question_of(text, self._prefix)) is not None:
            return replace(found, question=question)
        question = asks_why(text, self._prefix)
        return None if question is None else replace(found, question=question, why=True)

    def _without_command(self, path: str, body: bytes, *, typed_last: bool = False) -> Asked | None:
        """The request with what a user typed last in it, for those who ask for evidence without the command.

        With `typed_last` nothing may follow that, such as the results of tools. None for what clients ask by
        themselves, for code to complete and prompts without a template, and for what cannot be told apart.
        """
        found = self._typed(path, bounded(body))
        if found is None or is_no_users(path, found.request) or (typed_last and not found.place.last):
            return None
        question = found.question.strip()
        return replace(found, question=question, commanded=False) if question else None

    def _typed(self, path: str, body: bytes) -> Asked | None:
        """The request, with all that its user typed last as its question."""
        request = parsed(body)
        if request is None or is_refused_by_ollama(path, request):
            return None
        place = place_in(path, in_one_form(path, request), self._prefix)
        # Ollama reports fields of wrong types in its own words.
        return None if place is None else Asked(request, place.typed.text, place)

    async def _by_setting(self, grant: Grant, scope: Scope, body: bytes) -> Asked | None:
        """The request if its workspace wants evidence in all prompts. Nothing about it is refused."""
        # Most bodies name no workspace and are not read.
        request = parsed_if_bounded(body) if _NAMES_WORKSPACE.search(body) else None
        if await self._setting(grant, scope, request or {}) != "always":
            return None
        try:
            found = self._without_command(scope["path"], body, typed_last=True)
        except ValidationError:
            return None
        return found if found and len(found.question) <= self._settings.max_prompt_characters else None

    async def _setting(self, grant: Grant, scope: Scope, request: dict[str, Any]) -> Prompts:
        """The workspace's setting; `command` for a request that may not read the workspace."""
        try:
            reading = grant.narrowed("read")
            workspace = workspace_of(reading, scope["headers"], request.get("workspace"), self._settings.workspace)
            now = self._container.clock.monotonic()
            patience = _PATIENCE if now >= self._ask_again else 0.0
            preferred, outdated = await self._container.preferences.at_hand(workspace, seconds=patience)
            if outdated and patience:
                self._ask_again = self._container.clock.monotonic() + _PAUSE
            return preferred.prompts
        except CragsideError:
            return "command"
