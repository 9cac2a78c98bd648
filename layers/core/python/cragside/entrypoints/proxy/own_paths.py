"""Which paths are cragside's own. All others are Ollama's."""

import posixpath
from functools import lru_cache
from urllib.parse import unquote

from cragside.entrypoints.http.request_access import OPEN_ROUTES, RULES


def _prefix(route: str) -> str:
    segments = route.partition(" ")[2].split("/")
    return "/".join(segments[:3] if segments[1] == "v1" else segments[:2])


# These paths, and all below them.
OWN_PREFIXES = (*OPEN_ROUTES, *sorted({_prefix(route) for route in RULES}))


@lru_cache(maxsize=256)
def is_own(path: str) -> bool:
    """Whether a path is one of cragside's routes, or resembles one, as `//V1/documents/` does.

    Our application answers 404 for a path that only resembles a route, whether or not Ollama runs.
    """
    return _is_below(path) or _is_below(_normalised(path))


def _is_below(path: str) -> bool:
    return path.startswith(OWN_PREFIXES) and any(
        path == prefix or path.startswith(f"{prefix}/") for prefix in OWN_PREFIXES
    )


def _normalised(path: str) -> str:
    """The path decoded once more, in lower case, without empty segments and dots."""
    decoded = unquote(path).replace("\\", "/").lower()
    return posixpath.normpath("/" + decoded.lstrip("/"))
