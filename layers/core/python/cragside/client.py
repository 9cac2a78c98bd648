"""A client of cragside's HTTP interface. It raises the errors in the answers."""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Self

import httpx

from cragside.domain.errors import (
    ConfigurationError,
    CragsideError,
    DeadlineExceeded,
    Forbidden,
    NotFound,
    PayloadTooLarge,
    ProcessingError,
    ServiceUnavailable,
    Unauthorized,
    UnsupportedMediaType,
    ValidationError,
)
from cragside.domain.forward_proxy import signed_proxy, way_to

# With these headers a prompt needs no command, whichever the service has.
ALWAYS: Mapping[str, str] = {"X-RAG": "always"}
_CONNECTIONS = 100
_CONNECT_SECONDS = 5.0
_ANSWER_BYTES = 64 * 2**20
_MESSAGE_CHARACTERS = 2000
_KNOWN = (
    ValidationError,
    PayloadTooLarge,
    UnsupportedMediaType,
    Unauthorized,
    Forbidden,
    NotFound,
    DeadlineExceeded,
    ProcessingError,
)
_BY_CODE: Mapping[str, type[CragsideError]] = {error.code: error for error in _KNOWN}
_BY_STATUS: Mapping[int, type[CragsideError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    413: PayloadTooLarge,
    504: DeadlineExceeded,
}


class Client:
    """Sends requests to cragside and returns the JSON of its answers. Raises the errors that it answers.

    `address` is where it listens; with a `transport` requests take that way instead of the network. `setting` is what
    the user sets the address with: messages name it. A host that cannot be reached raises `ServiceUnavailable`, one
    that takes longer than `seconds` raises `DeadlineExceeded`; with None there is no such limit. It
    takes the proxy that the environment has for the host, follows no redirect, keeps no cookie, unpacks nothing, and
    reads 64 MB of an answer at most. Each event loop has connections of its own; `close` closes those of the loop that
    it runs in.
    """

    def __init__(
        self,
        address: str,
        *,
        setting: str = "endpoint",
        token: str | None = None,
        workspace: str | None = None,
        seconds: float | None = 35.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if token and not (token.isascii() and token.isprintable()):
            raise ConfigurationError("A token has printable ASCII characters only.")
        # A packed kilobyte can be a hundred megabytes.
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._token = token
        if workspace:
            if not (workspace.isascii() and workspace.isprintable()):
                raise ConfigurationError("The name of a workspace has printable ASCII characters only.")
            headers["X-RAG-Workspace"] = workspace
        self._setting, self._seconds, self._transport = setting, seconds, transport
        self._url = _checked(address, setting)
        self._by_loop: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}
        self._opened = partial(
            httpx.AsyncClient,
            base_url=self._url,
            headers=headers,
            timeout=httpx.Timeout(seconds, connect=min(seconds or _CONNECT_SECONDS, _CONNECT_SECONDS)),
            # A plug asks for many users with one client.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    async def get(self, path: str, **parameters: Any) -> Any:
        """Return the JSON of a GET. Parameters that are None are left out."""
        given = {name: value for name, value in parameters.items() if value is not None}
        return await self._answer("GET", path, params=given)

    async def find(self, path: str) -> Any:
        """Return the JSON of a GET, None for a 404."""
        try:
            return await self.get(path)
        except NotFound:
            return None

    async def post(
        self, path: str, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, **parameters: Any
    ) -> Any:
        """Return the JSON of a POST."""
        return await self._answer("POST", path, **_json(body, headers), params=parameters)

    async def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the JSON of a PATCH."""
        return await self._answer("PATCH", path, **_json(body))

    async def delete(self, path: str) -> bool:
        """Send a DELETE. Returns False for a 404."""
        try:
            await self._answer("DELETE", path)
        except NotFound:
            return False
        return True

    async def upload(self, path: str, name: str, content: bytes, fields: Mapping[str, str]) -> Any:
        """Upload one file, and return the JSON of the answer. The fields come before the file."""
        return await self._answer("POST", path, data=dict(fields), files={"files": (name, content)})

    async def send_elsewhere(self, url: str, fields: Mapping[str, str], content: bytes) -> None:
        """Upload one file to a bucket, without cragside's headers."""
        try:
            async with (
                httpx.AsyncClient(timeout=self._seconds, transport=_transport_to(url)) as elsewhere,
                elsewhere.stream("POST", url, data=dict(fields), files={"file": content}) as response,
            ):
                taken, status = response.is_success, response.status_code  # the rest may have no end
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServiceUnavailable("uploads", f"The bucket cannot be reached ({type(error).__name__}).") from error
        if not taken:
            raise ServiceUnavailable("uploads", f"The bucket did not take the file (status {status}).")

    async def close(self) -> None:
        """Close the connections."""
        http = self._by_loop.pop(asyncio.get_running_loop(), None)
        if http is not None:
            await http.aclose()

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def _answer(self, method: str, path: str, **request: Any) -> Any:
        try:
            # A file may take longer. Each part of it has its time.
            async with asyncio.timeout(None if "files" in request else self._seconds):
                response, content = await self._received(method, path, **request)
        except (httpx.HTTPError, TimeoutError) as error:
            late = isinstance(error, (httpx.TimeoutException, TimeoutError))
            if late and not isinstance(error, httpx.ConnectTimeout):
                raise DeadlineExceeded(f"{self._service} did not answer within {self._seconds:.0f} s.") from error
            raise ServiceUnavailable(
                "api",
                f"{self._service} cannot be reached{way_to(str(self._url))} ({type(error).__name__}). "
                f"Start `cragside serve` there, or correct {self._setting}.",
            ) from error
        if response.status_code == httpx.codes.NO_CONTENT:
            return None
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError) as error:
            if response.is_success:
                message = f"{self._service} did not answer JSON. Is {self._setting} the address of cragside?"
                raise ProcessingError(message) from error
            answer = None
        if response.is_success:
            return answer
        raise error_of(answer, response.status_code) or _unexplained(response.status_code, self._service)

    async def _received(self, method: str, path: str, **request: Any) -> tuple[httpx.Response, bytes]:
        """The answer and its content, in which an error does not tell the token."""
        content = bytearray()
        async with self._http().stream(method, path, **request) as response:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise ProcessingError(f"{self._service} answered compressed, which was not asked for.")
            async for part in response.aiter_bytes():
                content += part
                if len(content) > _ANSWER_BYTES:
                    raise ProcessingError(f"{self._service} answered more than {_ANSWER_BYTES // 2**20} MB.")
        text = bytes(content)
        hidden = self._token is not None and not response.is_success
        return response, text.replace(str(self._token).encode(), b"***") if hidden else text

    def _http(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            for other in list(self._by_loop):  # a copy: loops of other threads come and go
                if other.is_closed():
                    self._by_loop.pop(other, None)
            self._by_loop[loop] = self._opened(transport=self._transport or _transport_to(str(self._url)))
        return self._by_loop[loop]

    @property
    def _service(self) -> str:
        # without a password that it may have
        return f"The service at {self._url.scheme}://{self._url.netloc.decode()}"


def _transport_to(url: str) -> httpx.AsyncBaseTransport:
    return httpx.AsyncHTTPTransport(
        proxy=signed_proxy(url),
        limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
        # Only https needs certificates. Reading them takes longer than most requests, and no redirect is followed.
        verify=url.startswith("https:"),
    )


def error_of(answer: Any, status: int = 500) -> CragsideError | None:
    """The error in an answer, None if the answer has no message.

    The answer is `{"error": {"type", "message", "details"}}`, or as the compatible routes have it `{"error": "..."}` or
    `{"detail": "..."}`. There the status decides the kind of error.
    """
    detail = answer.get("error", answer.get("detail")) if isinstance(answer, dict) else None
    error = detail if isinstance(detail, dict) else {"message": detail}
    message, details = error.get("message"), error.get("details")
    if not isinstance(message, str) or not message:
        return None
    found = _of_code(str(error.get("type")), status, _printable(message))
    if isinstance(details, dict):
        found.details = {**found.details, **{str(name): value for name, value in details.items()}}
        if isinstance(found, ServiceUnavailable):
            found.component = str(found.details["component"])
    return found


def _printable(message: str) -> str:
    """Return a message without line breaks and control characters, which could forge lines of a log."""
    return "".join(each if each.isprintable() else " " for each in message[:_MESSAGE_CHARACTERS])


def _json(body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Write a body in ASCII, which can express all input, even half a surrogate pair."""
    return {
        "content": json.dumps(dict(body)).encode(),
        "headers": {"Content-Type": "application/json", **(headers or {})},
    }


def _of_code(code: str, status: int, message: str) -> CragsideError:
    if code == ServiceUnavailable.code or (code not in _BY_CODE and status in (502, 503)):
        return ServiceUnavailable("api", message)
    usual = ValidationError if status < 500 else ProcessingError
    return (_BY_CODE.get(code) or _BY_STATUS.get(status, usual))(message)


def _unexplained(status: int, service: str) -> CragsideError:
    """Return the error for a status without a message, such as one of a reverse proxy."""
    message = f"{service} answered with status {status}."
    if status in (502, 503):
        return ServiceUnavailable("api", message)
    if status != 404 and status in _BY_STATUS:
        return _BY_STATUS[status](message)
    return ValidationError(message) if 400 <= status < 500 and status != 404 else ProcessingError(message)


def _checked(address: str, setting: str) -> httpx.URL:
    if not address.startswith(("http://", "https://")):
        raise ConfigurationError(f"{setting} has to begin with http:// or https://.")
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"{setting} is not a valid address.") from error
    if not url.host:
        raise ConfigurationError(f"{setting} names no host.")
    if url.port is not None and not 0 < url.port < 65536:
        raise ConfigurationError(f"{setting} has a port that does not exist: {url.port}.")
    return url
