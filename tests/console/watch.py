"""Notes what goes wrong in the pages of a browser while a test looks at something else."""

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Request, WebError

_LOCAL = {"127.0.0.1", "localhost", "::1"}
_REMOTE = {"http", "https", "ws", "wss"}
# What Chromium says of its drawing without a graphics card.
_OF_THE_MACHINE = "GL Driver Message"


class Watch:
    """Errors of scripts, errors and warnings that the console logs, CSP violations, requests to other machines."""

    def __init__(self, context: "BrowserContext") -> None:
        self._seen: list[str] = []
        self._allowed: list[re.Pattern[str]] = []
        context.on("console", self._logged)
        context.on("weberror", self._failed)
        context.on("request", self._requested)

    def allow(self, pattern: str) -> None:
        """Expect such an entry, for example `status of 401`: the browser logs each failed request as an error."""
        self._allowed.append(re.compile(pattern))

    @property
    def wrong(self) -> list[str]:
        """Return the faults that no test expects."""
        return [entry for entry in self._seen if not any(pattern.search(entry) for pattern in self._allowed)]

    def _logged(self, message: "ConsoleMessage") -> None:
        if message.type in ("error", "warning", "assert") and _OF_THE_MACHINE not in message.text:
            self._seen.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _failed(self, error: "WebError") -> None:
        self._seen.append(f"script: {error.error}")

    def _requested(self, request: "Request") -> None:
        address = urlsplit(request.url)
        if address.scheme in _REMOTE and address.hostname not in _LOCAL:
            self._seen.append(f"request: {request.method} {request.url}")
