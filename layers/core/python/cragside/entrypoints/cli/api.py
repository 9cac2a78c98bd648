"""cragside's routes as the command line asks them: of a service at an address, or of this very process."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from cragside.domain.errors import (
    CragsideError,
    DeadlineExceeded,
    Forbidden,
    NotFound,
    PayloadTooLarge,
    ProcessingError,
    ServiceUnavailable,
    Unauthorized,
    ValidationError,
)

if TYPE_CHECKING:
    import httpx

    from cragside.bootstrap import Container
    from cragside.entrypoints.cli.session import Session
    from cragside.settings import Settings

Result = TypeVar("Result")

Address = Annotated[
    str | None,
    typer.Option("--api", metavar="URL", help="A running cragside to ask. Default: none, this process does it."),
]
Token = Annotated[str | None, typer.Option("--token", metavar="TOKEN", help="Token for --api. Default: RAG_API_TOKEN.")]
WorkspaceName = Annotated[
    str | None,
    typer.Option("--workspace", "--collection", "-w", metavar="NAME", help="Default: RAG_WORKSPACE."),
]

# A service may have a model to ask before it answers.
_SECONDS = 300.0
_ERRORS: Mapping[int, type[CragsideError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    413: PayloadTooLarge,
    504: DeadlineExceeded,
}


@dataclass(frozen=True, slots=True)
class Api:
    """Requests to cragside's routes; the errors they answer are raised."""

    client: "httpx.AsyncClient"

    async def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of a GET; parameters that are None are left out."""
        given = {name: value for name, value in parameters.items() if value is not None}
        return await self._answered("GET", path, params=given)

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON of a POST."""
        return await self._answered("POST", path, json=body)

    async def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON of a PATCH."""
        return await self._answered("PATCH", path, json=body)

    async def upload(self, path: str, name: str, content: bytes, fields: Mapping[str, str]) -> Any:
        """The JSON of an upload of one file; the fields come first."""
        return await self._answered("POST", path, data=dict(fields), files={"files": (name, content)})

    async def send(self, url: str, fields: Mapping[str, str], content: bytes) -> None:
        """A form with one file to somewhere else, which gets none of the service's headers."""
        import httpx

        try:
            async with httpx.AsyncClient(timeout=_SECONDS) as elsewhere:
                response = await elsewhere.post(url, data=dict(fields), files={"file": content})
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServiceUnavailable("uploads", f"The bucket cannot be reached ({type(error).__name__}).") from error
        if not response.is_success:
            raise ServiceUnavailable("uploads", f"The bucket did not take the file (status {response.status_code}).")

    async def find(self, path: str) -> Any:
        """The JSON of a GET, None when there is no such thing."""
        try:
            return await self.get(path)
        except NotFound:
            return None

    async def delete(self, path: str) -> None:
        """A DELETE."""
        await self._answered("DELETE", path)

    async def _answered(self, method: str, path: str, **request: Any) -> Any:
        import httpx

        try:
            response = await self.client.request(method, path, **request)
        except httpx.TimeoutException as error:
            raise DeadlineExceeded(f"{self._place} did not answer within {_SECONDS:.0f} s.") from error
        except httpx.HTTPError as error:
            raise ServiceUnavailable(
                "api",
                f"{self._place} cannot be reached ({type(error).__name__}). "
                "Start `cragside serve` there, or correct --api.",
            ) from error
        if response.status_code == 204:
            return None
        if response.is_success:
            return _json(response, self._place)
        raise _refusal(response, self._place)

    @property
    def _place(self) -> str:
        url = self.client.base_url  # without a password that it may have
        return f"The service at {url.scheme}://{url.netloc.decode()}"


def ask(
    session: "Session",
    settings: "Settings",
    work: Callable[[Api], Awaitable[Result]],
    *,
    address: str | None,
    token: str | None,
    searches: bool = False,
) -> Result:
    """What `work` returns, asking the service at the address, or the routes of this process.

    What `searches` needs the workspace's embedding model; the rest is answered without it.
    """
    if address is not None:
        return ask_service(settings, work, address, token)
    # Whoever runs the command may read the files that the routes answer from.
    asked = ("api_token", "api_token_secret", "workspace_tokens", "tokens_file", "audit_log")
    settings = settings.model_copy(update=dict.fromkeys(asked))

    async def inside(container: "Container") -> Result:
        import httpx

        from cragside.entrypoints.http.app import create_app

        # The routes tell no client what is wrong with the settings: opening the store does, to whoever made them.
        opening = container.workspaces.prepare if searches else container.workspaces.repository
        await opening(settings.workspace)
        transport = httpx.ASGITransport(create_app(container))
        async with _client("http://localhost", settings, None, transport) as client:
            return await work(Api(client))

    return session.run(settings, inside)


def ask_service(
    settings: "Settings", work: Callable[[Api], Awaitable[Result]], address: str, token: str | None
) -> Result:
    """What `work` returns, asking the service at the address."""
    import asyncio

    if not address.startswith(("http://", "https://")):
        raise ValidationError("--api has to begin with http:// or https://.")
    configured = settings.api_token.get_secret_value() if settings.api_token else None

    async def outside() -> Result:
        async with _client(address, settings, token or configured, None) as client:
            return await work(Api(client))

    return asyncio.run(outside())


def named_workspace(settings: "Settings", address: str | None) -> str | None:
    """The workspace to ask for; None where the service's token says by itself which that is."""
    return settings.workspace if address is None or "workspace" in settings.model_fields_set else None


def _client(
    address: str, settings: "Settings", token: str | None, transport: "httpx.ASGITransport | None"
) -> "httpx.AsyncClient":
    import httpx

    workspace = named_workspace(settings, None if transport else address)
    headers = {"X-RAG-Workspace": workspace} if workspace else {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return httpx.AsyncClient(base_url=address, headers=headers, timeout=_SECONDS, transport=transport)


def _json(response: "httpx.Response", place: str) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise ProcessingError(f"{place} did not answer JSON. Is --api the address of cragside?") from error


def _refusal(response: "httpx.Response", place: str) -> CragsideError:
    """The error that stands for the answer, whichever of the contracts' shapes it has."""
    message = _message(response) or f"{place} answered with status {response.status_code}."
    if response.status_code in (502, 503):
        return ServiceUnavailable("api", message)
    if known := _ERRORS.get(response.status_code):
        return Forbidden(message, **_limit_in(response)) if known is Forbidden else known(message)
    return ValidationError(message) if response.status_code < 500 else ProcessingError(message)


def _limit_in(response: "httpx.Response") -> dict[str, str]:
    """The limit of the token that is reached, as `Forbidden` has it; empty for another reason."""
    try:
        limit = response.json()["error"]["details"]["limit"]
    except (ValueError, LookupError, TypeError):
        return {}
    return {"limit": limit} if isinstance(limit, str) else {}


def _message(response: "httpx.Response") -> str:
    try:
        body = response.json()
    except ValueError:
        return ""
    error = body.get("error", body.get("detail", "")) if isinstance(body, dict) else ""
    if isinstance(error, dict):
        error = error.get("message", "")
    return error if isinstance(error, str) else ""
