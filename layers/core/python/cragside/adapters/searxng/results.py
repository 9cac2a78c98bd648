"""Reads SearXNG's answers leniently, because fields vary with its version and engines."""

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

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
    """The engines that did not answer, with their reasons."""
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
