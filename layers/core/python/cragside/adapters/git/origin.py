"""The repository that git is told to clone: a folder, or a URL whose addresses were checked."""

import asyncio
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from yarl import URL

from cragside.adapters.web.guard import AddressRefused, Guard
from cragside.adapters.web.resolver import Resolver, SystemResolver
from cragside.domain.addresses import parse_address
from cragside.domain.errors import ValidationError

_CREDENTIALS = re.compile(r"(?i)(https?://)([^/?#@]*)@(?=[^/?#@]*(?:[/?#]|$))")
_OTHER_PROTOCOL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[^/\\@]*+@[^/\\:]*+:|[^/\\.~][^/\\:]*+:")


@dataclass(frozen=True, slots=True)
class CloneOrigin:
    """What git clones, with its settings. `shown` is the address without credentials; `secret` are secret settings."""

    address: str
    shown: str
    settings: tuple[str, ...]
    secret: dict[str, str]


async def origin_of(
    source: str, allow: Iterable[str], resolver: Resolver | None, *, folders: bool = True
) -> CloneOrigin:
    """The origin for an https URL or, with `folders`, a folder.

    Raises `ValidationError` for anything that must not be cloned.
    """
    if re.match(r"(?i)https?://", source):
        return await _remote(source, Guard(allow), resolver if resolver is not None else SystemResolver())
    if not folders:
        raise ValidationError("Give a repository as an https:// URL.", field="url")
    if source.startswith("-") or "\x00" in source or _OTHER_PROTOCOL.match(source):
        raise ValidationError("Give a repository as an https:// URL or as the path of a folder.")
    folder = await asyncio.to_thread(_local, source)
    return CloneOrigin(folder.as_uri(), folder.as_posix(), ("protocol.file.allow=always",), {})


def _local(source: str) -> Path:
    folder = Path(source).expanduser().resolve()
    if not (folder / ".git").exists() and not (folder / "HEAD").is_file():
        raise ValidationError(f"{source} is not a git repository. Index its files with cragside ingest --dir.")
    return folder


async def _remote(source: str, guard: Guard, resolver: Resolver) -> CloneOrigin:
    given = _CREDENTIALS.match(source)
    try:
        url = guard.target(_CREDENTIALS.sub(r"\1", source, count=1))
        host = url.raw_host or ""
        found = [host] if parse_address(host) else await resolver.addresses(host)
        addresses = sorted(guard.admit(url, found))
    except AddressRefused as error:
        raise ValidationError(f"The repository is not cloned: {error}") from error
    except OSError as error:
        raise ValidationError(f"The repository's host {url.raw_host} cannot be found.") from error
    finally:
        await resolver.close()
    if url.scheme == "http" and not guard.allows(url, addresses):
        raise ValidationError("Repositories are cloned over https. Only hosts in RAG_FETCH_ALLOW may use http.")
    clean = url.with_query(None)
    settings = [f"protocol.{url.scheme}.allow=always"]
    if parse_address(host) is None:
        settings.append(_pinned(clean, addresses))
    secret = {"http.extraHeader": _authorization(given[2])} if given else {}
    return CloneOrigin(str(clean), str(clean), tuple(settings), secret)


def _pinned(url: URL, addresses: Sequence[str]) -> str:
    """Git's setting that lets curl connect to these addresses only."""
    listed = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    return f"http.curloptResolve={url.host_subcomponent}:{url.port}:{listed}"


def _authorization(credentials: str) -> str:
    name, _, password = credentials.partition(":")
    return "Authorization: Basic " + b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
