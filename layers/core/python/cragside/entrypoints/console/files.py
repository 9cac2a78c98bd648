"""Serves the console's files. They hold no data, so they need no token."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

from cragside.domain.errors import NotFound

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
}
# An editor's backup, for example.
_OTHER_TYPE = "application/octet-stream"
# `blob:` and `data:` are pictures of the style sheet and of the graph. Texts of documents never become mark-up.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Asks again each time, so that a page never mixes files of two versions.
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of the console, plain and compressed."""

    content: bytes
    packed: bytes
    media_type: str
    etag: str


@router.api_route("/", methods=["GET", "HEAD"])
async def start(request: Request) -> Response:
    """Leads browsers to the console. Other clients of `cragside serve` get Ollama's answer here."""
    if "text/html" not in request.headers.get("accept", ""):
        raise NotFound("There is nothing at this path. GET /docs lists the routes.")
    return Response(status_code=307, headers={"Location": "console/", "Vary": "Accept"})


@router.api_route("/console", methods=["GET", "HEAD"])
async def console() -> Response:
    """The console's address without its slash."""
    return Response(status_code=307, headers={"Location": "console/"})


@router.api_route("/console/{path:path}", methods=["GET", "HEAD"])
async def console_file(request: Request, path: str) -> Response:
    """A file of the console, compressed where the client takes that."""
    file = static_files().get(path or "index.html")
    if file is None:
        raise NotFound("The console has no such file.")
    headers = {**_HEADERS, "ETag": file.etag}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.content, media_type=file.media_type, headers=headers)
    return Response(file.packed, media_type=file.media_type, headers={**headers, "Content-Encoding": "gzip"})


@cache
def static_files() -> dict[str, StaticFile]:
    """All files by their paths, read and compressed at the first request."""
    return {path: _static_file(path, file.read_bytes()) for path, file in _below(files(__package__) / "static", "")}


def _below(folder: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
    found: list[tuple[str, Traversable]] = []
    for entry in folder.iterdir():
        path = f"{prefix}{entry.name}"
        found += _below(entry, f"{path}/") if entry.is_dir() else [(path, entry)]
    return found


def _static_file(path: str, content: bytes) -> StaticFile:
    etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    return StaticFile(content, gzip.compress(content, mtime=0), _TYPES.get(path.rpartition(".")[2], _OTHER_TYPE), etag)
