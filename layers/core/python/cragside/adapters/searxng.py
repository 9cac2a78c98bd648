"""Searches the web with SearXNG's JSON API, and reads its answers leniently: they vary with version and engines."""

import html
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from typing_extensions import override
from yarl import URL

from cragside.adapters.http_clients import HostAddress, PerLoop, body_of, failing_as, session_with
from cragside.domain.characters import encodable
from cragside.domain.errors import ServiceUnavailable
from cragside.ports.search_service import SearchService

_TITLE_CHARACTERS = 300
_CONTENT_CHARACTERS = 8000
_URL_CHARACTERS = 2000
_READ_CHARACTERS = 20_000  # of a text with mark-up

# An unclosed comment or element reaches to the end. Otherwise each opening would cause a search to the end.
_TAG = re.compile(r"<!--.*?(?:-->|\Z)|</?[a-zA-Z][^<>]*+>", re.DOTALL)
_UNSEEN = re.compile(r"<(script|style)\b.*?(?:</\1\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
_NO_CHARACTER = re.compile(r"&#[0-9]{20,}+;?")


def cleaned(answer: Mapping[str, Any], limit: int) -> list[dict[str, Any]]:
    """At most `limit` results as `{"title", "url", "content"}`, without mark-up and user names, each page once.

    Direct answers and infoboxes with a URL come first. A result without a snippet has its title as content.
    """
    results: dict[str, dict[str, Any]] = {}
    for title, url, content in _found(answer):
        if len(results) >= limit:
            break
        address = _address(url)
        if address is None:
            continue
        words = _plain(title, _TITLE_CHARACTERS)
        snippet = _plain(content, _CONTENT_CHARACTERS) or words
        if not snippet:
            continue
        key = _same_page(address)
        if key not in results:
            results[key] = {"title": words or urlsplit(address).netloc, "url": address, "content": snippet}
    return list(results.values())


def failed_engines(answer: Mapping[str, Any]) -> list[str]:
    """Return the engines that did not answer, with their reasons."""
    return [reason for entry in _items(answer.get("unresponsive_engines")) if (reason := _engine(entry))]


def _found(answer: Mapping[str, Any]) -> Iterator[tuple[Any, Any, Any]]:
    for item in _objects(answer.get("answers")):
        yield item.get("title"), item.get("url"), item.get("answer")
    for box in _objects(answer.get("infoboxes")):
        links = [link.get("url") for link in _objects(box.get("urls"))]
        yield box.get("infobox") or box.get("title"), next(iter(links), box.get("id")), box.get("content")
    for result in _objects(answer.get("results")):
        yield result.get("title"), result.get("url"), result.get("content")


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> Iterable[Mapping[str, Any]]:
    return (item for item in _items(value) if isinstance(item, dict))


def _engine(entry: Any) -> str:
    if isinstance(entry, list):
        name, *reason = [_plain(part, 80) for part in entry] or [""]
        reasons = ", ".join(filter(None, reason))
        return f"{name} ({reasons})" if reasons else name
    if isinstance(entry, dict):
        return _plain(entry.get("engine") or entry.get("name"), 80)
    return _plain(entry, 80)


def _plain(value: Any, limit: int) -> str:
    if not isinstance(value, str):
        return ""
    seen = _TAG.sub("", _UNSEEN.sub(" ", value[: min(limit * 4, _READ_CHARACTERS)]))
    # Python refuses numbers of thousands of digits, so html.unescape would raise.
    entities = _NO_CHARACTER.sub("\ufffd", seen)
    return " ".join(html.unescape(entities).split())[:limit].strip()


def _address(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > _URL_CHARACTERS or any(c.isspace() for c in value.strip()):
        return None
    try:
        parts = urlsplit(value.strip())
        named = bool(parts.hostname)
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not named:
        return None
    # The part before the @ may imitate a host or contain a password, so it must not be cited.
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else value.strip()


def _same_page(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc.lower()}{parts.path.rstrip('/')}?{parts.query}"


_CONNECT_SECONDS = 2.0
_READ_SECONDS = 10.0
_MOST_BYTES = 2_000_000
_MOST_REDIRECTS = 3
_MOST_RESULTS = 10
_QUERY_CHARACTERS = 512
# SearXNG reads words that begin like this as commands for an engine, a language, a time limit or a redirect.
_COMMAND = re.compile(r"(?<!\S)[!?:<]+(?=\S)")
_REASONS = {
    401: "wants a password (401). Write it into SEARXNG_HOST: https://NAME:PASSWORD@HOST",
    403: "refused JSON (403). Add json to search.formats in its settings.yml",
    404: "has no search there (404). Correct the path in SEARXNG_HOST",
    429: "limits our requests (429). Turn its limiter off, or let this address pass",
}


class SearxngSearch(SearchService):
    """Searches with SearXNG. `rewriter(query, model)` transforms queries.

    Credentials in `base_url` are sent to that host only, and no message shows them.
    """

    def __init__(self, base_url: str, rewriter: Callable[[str, str | None], Awaitable[str]]) -> None:
        address = HostAddress.parse(base_url)
        self.url = address.url
        headers = {"Accept": "application/json", "User-Agent": "cragside", **address.authorization}
        timeout = aiohttp.ClientTimeout(connect=None, sock_connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS)
        self._rewriter = rewriter
        self._sessions = PerLoop(
            lambda: session_with(self.url, connector=aiohttp.TCPConnector(limit=0), timeout=timeout, headers=headers)
        )

    @override
    async def search(self, query: str) -> list[dict[str, Any]]:
        words = " ".join(_COMMAND.sub("", encodable(query)).split())[:_QUERY_CHARACTERS]
        if not words:
            return []
        answer = self._read(await self._fetched(words))
        results = cleaned(answer, _MOST_RESULTS)
        failed = failed_engines(answer)
        if not results and failed:
            raise ServiceUnavailable("search", f"SearXNG's engines failed: {', '.join(failed[:5])}. See its log").at(
                self.url
            )
        return results

    @override
    async def check(self) -> None:
        with failing_as(self._down, self.url):
            async with self._sessions.here().get(URL(f"{self.url}/healthz"), allow_redirects=False) as response:
                if response.status >= 500:
                    raise self._down(f"answered {response.status}")

    @override
    async def transform_query(self, query: str, *, model: str | None = None) -> str:
        return await self._rewriter(query, model)

    async def close(self) -> None:
        """Close the running loop's session."""
        await self._sessions.close()

    async def _fetched(self, words: str) -> bytes:
        url = URL(f"{self.url}/search").with_query(q=words, format="json")
        with failing_as(self._down, self.url):
            for _ in range(_MOST_REDIRECTS):
                async with self._sessions.here().get(url, allow_redirects=False) as response:
                    if response.status not in (301, 302, 303, 307, 308):
                        return await self._body(response)
                    url = self._redirected(url, response.headers.get("Location", ""))
        raise self._down("redirects in circles")

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        if response.status != 200:
            raise self._down(_REASONS.get(response.status, f"answered {response.status}"), response.status)
        body = await body_of(response, _MOST_BYTES)
        if body is None:
            raise self._down(f"answered more than {_MOST_BYTES:,} bytes")
        return body

    def _redirected(self, url: URL, location: str) -> URL:
        target = url.join(URL(location))
        if not location or target.host != url.host or (url.scheme, target.scheme) == ("https", "http"):
            raise self._down("redirects to another host")
        return target

    def _read(self, body: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise self._down("did not answer JSON. Is this a SearXNG? Correct SEARXNG_HOST", 200) from error
        if not isinstance(answer, dict) or not isinstance(answer.get("results"), list):
            raise self._down("answered JSON without results. Is this a SearXNG? Correct SEARXNG_HOST", 200)
        return answer

    def _down(self, reason: str, answered: int | None = None) -> ServiceUnavailable:
        details = {} if answered is None else {"answered": answered}
        return ServiceUnavailable("search", f"SearXNG {reason}", **details).at(self.url)
