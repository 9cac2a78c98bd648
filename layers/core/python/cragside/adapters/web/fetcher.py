"""Fetches pages from untrusted URLs, over connections to checked addresses alone."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Iterable
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from typing_extensions import override
from yarl import URL

from cragside import __version__
from cragside.adapters.fair_slots import FairSlots
from cragside.adapters.http_clients import body_of
from cragside.adapters.web.guard import AddressRefused, Guard, Resolver, SystemResolver
from cragside.domain.addresses import parse_address
from cragside.domain.characters import encodable
from cragside.ports.files import FetchedPage, FetchFailed, PageFetcher


class PinnedResolver(AbstractResolver):
    """Resolves every name to the same addresses."""

    def __init__(self, addresses: AbstractSet[str]) -> None:
        self._addresses = addresses

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in sorted(self._addresses)
        ]

    @override
    async def close(self) -> None:
        pass


def pinned_connector(addresses: AbstractSet[str]) -> aiohttp.TCPConnector:
    """Return a connector for one request, which connects to these addresses only.

    The certificate is still checked against the name in the URL. The sockets are checked too, because aiohttp does not
    use the resolver for a URL with an address.
    """

    def open_socket(target: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = target
        if address[0] not in addresses:
            raise OSError(f"{address[0]} is not one of the addresses that were checked")
        return socket.socket(family, kind, protocol)

    return aiohttp.TCPConnector(
        resolver=PinnedResolver(addresses), use_dns_cache=False, force_close=True, socket_factory=open_socket
    )


CONTENT_TYPES = frozenset(
    {
        "application/json",
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/xhtml+xml",
        "message/rfc822",
        "text/html",
        "text/markdown",
        "text/plain",
        "text/x-markdown",
    }
)
_HEADERS = {
    "User-Agent": f"cragside/{__version__}",
    "Accept": "text/html, application/xhtml+xml, application/pdf, text/plain, text/markdown, */*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
_ENCODINGS = ("", "identity", "gzip", "deflate")
_REDIRECTS = (301, 302, 303, 307, 308)
_PAGES = (200, 203)
_CONNECT_SECONDS = 10.0
_TOKEN = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
_CHARSET = re.compile(r"[\w.:+-]{1,40}", re.ASCII)


class GuardedFetcher(PageFetcher):
    """Fetches with GET, without cookies, credentials, proxies or referrer.

    `allow` names hosts and ranges beyond the public Internet, see `Guard`. Each event loop has `parallel` fetches in
    flight; others wait, and workspaces take turns. `timeout` (seconds) bounds the wait, and then the whole fetch;
    `max_bytes` bounds the decompressed body. The reason is `ssrf_blocked` for everything that the guard refuses.
    """

    def __init__(
        self,
        *,
        allow: Iterable[str] = (),
        resolver: Resolver | None = None,
        timeout: float = 30.0,
        max_bytes: int = 10 * 1024 * 1024,
        max_redirects: int = 5,
        parallel: int = 5,
    ) -> None:
        self._guard = Guard(allow)
        self._resolver = resolver if resolver is not None else SystemResolver(parallel=parallel)
        self._timeout = timeout
        self._max_bytes = max_bytes
        self._max_redirects = max_redirects
        self._parallel = parallel
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, FairSlots] = WeakKeyDictionary()

    @override
    async def fetch(self, url: str, *, workspace: str = "") -> FetchedPage:
        fetch = _Fetch(url)
        async with self._turn(fetch, workspace):
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._followed(fetch)
            except AddressRefused as error:
                raise fetch.failed("ssrf_blocked", str(error)) from error
            except TimeoutError as error:
                raise fetch.failed("timeout", "The page took too long.") from error
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise fetch.failed("fetch_failed", _why(error)) from error

    @override
    async def close(self) -> None:
        await self._resolver.close()

    @asynccontextmanager
    async def _turn(self, fetch: "_Fetch", workspace: str) -> AsyncIterator[None]:
        turns = self._turns.setdefault(asyncio.get_running_loop(), FairSlots(self._parallel))
        try:
            await turns.take(workspace, patience=self._timeout)
        except TimeoutError as error:
            raise fetch.failed("timeout", "Too many pages are being fetched. Try again later.") from error
        try:
            yield
        finally:
            turns.give_back(workspace)

    async def _followed(self, fetch: "_Fetch") -> FetchedPage:
        url = self._guard.target(fetch.url)
        for _ in range(self._max_redirects + 1):
            page = await self._requested(url, fetch)
            if isinstance(page, FetchedPage):
                return page
            url = page
        raise fetch.failed("redirect_limit", f"The page redirects more than {self._max_redirects} times.")

    async def _requested(self, url: URL, fetch: "_Fetch") -> FetchedPage | URL:
        """Return the page, or the URL that it redirects to."""
        addresses = self._guard.admit(url, await self._addresses(url.raw_host or ""))
        async with (
            aiohttp.ClientSession(
                connector=pinned_connector(addresses),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                trust_env=False,
            ) as session,
            session.get(url, allow_redirects=False, headers=_HEADERS) as response,
        ):
            fetch.status = response.status
            if response.status in _REDIRECTS:
                return self._guard.target(_location(response, fetch), base=url)
            if response.status not in _PAGES:
                raise fetch.failed("fetch_failed", f"The page answered {response.status}.")
            return FetchedPage(
                url=str(url),
                content_type=_content_type(response, fetch),
                content=await self._body(response, fetch),
                charset=_charset(response),
                status=response.status,
            )

    async def _addresses(self, host: str) -> list[str]:
        if parse_address(host) is not None:
            return [host]
        found = list(await self._resolver.addresses(host))
        if not found:
            raise OSError(f"{host} has no address")
        return found

    async def _body(self, response: aiohttp.ClientResponse, fetch: "_Fetch") -> bytes:
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise fetch.failed("fetch_failed", "The page has a compression that was not requested.")
        body = None
        if (response.content_length or 0) <= self._max_bytes:
            body = await body_of(response, self._max_bytes)
        if body is None:
            raise fetch.failed("too_large", f"The page is larger than {self._max_bytes:,} bytes.")
        return body


class _Fetch:
    """One call: the requested URL, and the status of the last answer."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.status: int | None = None

    def failed(self, reason: str, message: str) -> FetchFailed:
        return FetchFailed(encodable(self.url), reason, message, status=self.status)


def _location(response: aiohttp.ClientResponse, fetch: _Fetch) -> str:
    location = response.headers.get("Location", "").strip(" \t")
    if not location:
        raise fetch.failed("fetch_failed", f"The page answered {response.status} without a Location.")
    return location


def _content_type(response: aiohttp.ClientResponse, fetch: _Fetch) -> str:
    named = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if named in CONTENT_TYPES or (_TOKEN.fullmatch(named) and named.endswith("+json")):
        return named
    shown = named[:100] if _TOKEN.fullmatch(named) else "unknown"
    raise fetch.failed(f"unsupported_content_type: {shown}", f"Pages of the type {shown} cannot be indexed.")


def _charset(response: aiohttp.ClientResponse) -> str | None:
    charset = response.charset
    return charset.lower() if charset and _CHARSET.fullmatch(charset) else None


def _why(error: Exception) -> str:
    """Return the reason of a failure without addresses: clients must not learn what names resolve to."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "The host's certificate is not valid for its name."
    if isinstance(error, aiohttp.ClientSSLError):
        return "The host does not speak TLS properly."
    if isinstance(error, aiohttp.ClientPayloadError):
        return "The page ended too early, or its compression is damaged."
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.ServerDisconnectedError):
        return "The host does not speak HTTP properly."
    return "The host cannot be found or does not answer."
