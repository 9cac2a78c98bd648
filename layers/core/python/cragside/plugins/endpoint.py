"""A cragside that runs elsewhere, asked over HTTP."""

from collections.abc import Mapping
from typing import Any

import httpx

from cragside.domain.errors import (
    ConfigurationError,
    CragsideError,
    DeadlineExceeded,
    ProcessingError,
    ServiceUnavailable,
)
from cragside.plugins.failures import error_of

_CONNECTIONS = 100


class EnrichEndpoint:
    """Asks `POST /v1/enrich` of the service at `address`, with `token` as bearer, for at most `timeout` seconds."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        timeout: float = 35.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        try:
            base = httpx.URL(address)
        except httpx.InvalidURL as error:
            raise ConfigurationError("endpoint has to be an http or https address.") from error
        if base.scheme not in ("http", "https") or not base.host:
            raise ConfigurationError("endpoint has to be an http or https address.")
        self._client = httpx.AsyncClient(
            base_url=base,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(timeout, connect=min(timeout, 5.0)),
            limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
            # Prompts go to the endpoint and nowhere else, whatever HTTP_PROXY says.
            trust_env=False,
            transport=transport,
        )

    async def enhanced(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The enhanced request. Raises what the service answered, or `ServiceUnavailable("cragside", ...)`."""
        try:
            response = await self._client.post("/v1/enrich", json=dict(request))
        except httpx.TimeoutException as error:
            raise DeadlineExceeded("The cragside endpoint took too long to answer.") from error
        except httpx.TransportError as error:
            raise ServiceUnavailable("cragside", "The cragside endpoint does not answer.") from error
        return _checked(response, request)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _checked(response: httpx.Response, request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if response.status_code != 200:
        raise error_of(answer) or _foreign(response.status_code)
    text = "prompt" if request.get("messages") is None else "messages"
    if not isinstance(answer, dict) or not isinstance(answer.get(text), type(request.get(text))):
        raise ProcessingError("The endpoint answered 200, but not with an enhanced request. Is it a cragside?")
    return answer


def _foreign(status: int) -> CragsideError:
    message = f"The endpoint answered {status} without cragside's error contract."
    return ServiceUnavailable("cragside", message) if status >= 502 else ProcessingError(message)
