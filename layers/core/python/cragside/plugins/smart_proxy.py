"""The RAG plugin of the agent contract, for ollama-smart-proxy."""

import json
import logging
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from cragside.application.contract import enhanced_request, error_envelope
from cragside.client import Client
from cragside.domain.errors import ConfigurationError, CragsideError, ProcessingError
from cragside.domain.prompt import inject, question_in, user_text
from cragside.domain.query import DEFAULT_PREFIX
from cragside.plugins.service import checked_answer, checked_command

if TYPE_CHECKING:
    from cragside.application.enricher import Enricher
    from cragside.bootstrap import Container

ProxyRequest = dict[str, Any]
FailMode = Literal["open", "closed"]

_log = logging.getLogger("cragside.plugins")
# ollama-smart-proxy treats every word at the start that begins with a slash as a command, and removes it.
_PROXY_COMMANDS = re.compile(r"(?:\s*/\w+)+")


@dataclass(frozen=True, slots=True)
class PluginConfiguration:
    """The contract's plugin configuration. `priority` is kept for hosts that order plugins by it."""

    name: str = "rag"
    version: str = "1.0.0"
    description: str = "RAG enhancement plugin for Ollama Smart Proxy"
    command_prefix: str = DEFAULT_PREFIX
    priority: int = 10
    enabled: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return the contract's JSON form."""
        return asdict(self)


class RagAgent:
    """Adds evidence to requests that begin with the command. Other requests pass through unchanged.

    It uses the given `enricher`, or the cragside at `endpoint`. Without both it builds its own from the environment at
    its first use. On a failure, `fail_mode` `open` logs the error contract and returns the request unchanged, and
    `closed` raises. Without `fail_mode`, an own cragside uses the environment's; otherwise it is `open`.

    A given enricher or endpoint must have the same command as `configuration.command_prefix`.
    """

    def __init__(
        self,
        *,
        enricher: "Enricher | None" = None,
        endpoint: str | Client | None = None,
        token: str | None = None,
        configuration: PluginConfiguration | None = None,
        fail_mode: FailMode | None = None,
    ) -> None:
        if enricher is not None and endpoint is not None:
            raise ConfigurationError("A RagAgent works with an enricher or with an endpoint, not with both.")
        self.configuration = configuration or PluginConfiguration()
        command = checked_command(self.configuration.command_prefix)
        if fail_mode not in (None, *get_args(FailMode)):
            raise ConfigurationError("fail_mode is open or closed.")
        self._fail_mode = fail_mode
        self._command = command
        self._enricher = enricher
        self._client = Client(endpoint, token=token) if isinstance(endpoint, str) else endpoint
        self._container: Container | None = None

    @property
    def name(self) -> str:
        """The word after the slash, by which the proxy chooses the plugin: `rag`."""
        return self.configuration.name

    async def on_retrieve(self, request: ProxyRequest) -> ProxyRequest:
        """Answer the agent contract's hook: the enhanced request, or the same object if it has no command."""
        return await self._answer(request, lambda same: same)

    async def on_request(self, request: ProxyRequest) -> ProxyRequest:
        """The proxy's hook. Its request has `messages` or `prompt`, and the `agents` that the proxy read from the text.

        `/other /rag question` names this plugin too. The commands before the question are removed.
        """
        return await self._answer(request, self._as_commanded)

    async def on_response(self, request: ProxyRequest, response: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the unchanged response. The contract passes only the response; the proxy passes the request first."""
        return request if response is None else response

    async def close(self) -> None:
        """Close what this agent opened. The caller closes its enricher."""
        container, self._container = self._container, None
        for opened in (self._client, container):
            if opened is not None:
                await opened.close()

    async def _answer(self, request: ProxyRequest, read: Callable[[ProxyRequest], ProxyRequest]) -> ProxyRequest:
        # A host that passes anything but a request gets it back, as after any failure.
        if not self.configuration.enabled or not isinstance(request, dict):
            return request
        try:
            commanded = read(request)
            question = question_in(commanded, self.configuration.command_prefix)
            return request if question is None else await self._enhanced(commanded, question)
        except CragsideError as error:
            return self._failed(error, request)
        except Exception as unexpected:
            _log.debug("enrichment failed", exc_info=unexpected)
            failure = ProcessingError(f"An internal error occurred ({type(unexpected).__name__}).")
            failure.__cause__ = unexpected
            return self._failed(failure, request)

    async def _enhanced(self, request: ProxyRequest, question: str) -> ProxyRequest:
        if self._client is not None:
            return checked_answer(await self._client.post("/v1/enrich", request), request, self._command)
        enricher = self._enricher or self._opened().enricher
        return enhanced_request(await enricher.enrich(request, question=question))

    def _opened(self) -> "Container":
        """Return the agent's own cragside, built at its first use on the event loop that uses it."""
        if self._container is None:
            # Imported here because an agent with an endpoint does not need it.
            from cragside.bootstrap import Container
            from cragside.settings import load_settings

            settings = load_settings().model_copy(update={"command_prefix": self._command})
            self._fail_mode = self._fail_mode or settings.fail_mode
            self._container = Container(settings)
        return self._container

    def _failed(self, error: CragsideError, request: ProxyRequest) -> ProxyRequest:
        contract = error_envelope(error, request.get("id"))
        _log.error("The prompt goes on without evidence: %s", json.dumps(contract, default=str))
        if self._fail_mode == "closed":
            raise error
        return request

    def _as_commanded(self, request: ProxyRequest) -> ProxyRequest:
        agents = request.get("agents")
        if not isinstance(agents, list) or self.name not in agents:
            return request
        # The proxy's original text: other plugins may have changed the message since.
        text = request.get("_original_content")
        commands = _PROXY_COMMANDS.match(text) if isinstance(text, str) else None
        if commands is None or user_text(request) is None:
            return request
        return inject(request, "", f"{self.configuration.command_prefix} {commands.string[commands.end() :].strip()}")
