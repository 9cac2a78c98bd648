"""Examines SearXNG, and says which lines of its settings.yml, or of ours, make it answer."""

from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from cragside.domain.errors import ServiceUnavailable
from cragside.domain.faults import Fault
from cragside.domain.forward_proxy import signed_proxy
from cragside.entrypoints.error_lines import address_of
from cragside.entrypoints.findings import Finding, Manner

if TYPE_CHECKING:
    from cragside.bootstrap import Container

# What its settings.yml lacks, by the status that it answers to a search.
_LINES = {403: "search:\n  formats:\n    - html\n    - json", 429: "server:\n  limiter: false"}
_PASSING = (
    "\nTo keep its limiter, let cragside's address pass in its limiter.toml:\n"
    '  [botdetection.ip_lists]\n  pass_ip = ["ADDRESS"]'
)
# Paths below which reverse proxies serve it.
_USUAL = ("", "/searxng", "/searx", "/search")
_PROBE_SECONDS = 3.0
_MOST_PROBES = 6


async def examine_searxng(container: "Container", manner: Manner) -> list[Finding]:
    """Ask SearXNG whether it is up, or with a thorough manner for results."""
    address = container.settings.searxng_host
    if container.search is None or address is None:
        return [Finding("searxng", "not configured", remedy="Set SEARXNG_HOST to fall back on the web.")]
    if not manner.thorough:
        await container.search.check()
        return [Finding("searxng", "ok", await version_at(address), "answers")]
    try:
        results = await container.search.search("cragside")
    except ServiceUnavailable as error:
        fault = Fault.of("searxng", error, manner.message(error))
        remedy = await _remedy(error.details.get("answered"), fault.remedy, address)
        return [Finding("searxng", "error", detail=fault.cause, remedy=remedy)]
    found = f"answers in JSON, {len(results)} results for a test search"
    return [Finding("searxng", "ok", await version_at(address), found)]


async def version_at(address: str) -> str:
    """The version from SearXNG's /config, "" if it has none."""
    import httpx

    try:
        async with httpx.AsyncClient(timeout=_PROBE_SECONDS, trust_env=False, proxy=signed_proxy(address)) as client:
            return str((await client.get(f"{address}/config")).json().get("version", ""))[:40]
    except (httpx.HTTPError, ValueError, AttributeError):
        return ""


async def _remedy(status: int | None, remedy: str, address: str) -> str:
    """The `remedy` with the lines that carry it out."""
    if lines := _LINES.get(status or 0):
        shown = f"{remedy} Its settings.yml then has these lines. Restart it:\n{_indented(lines)}"
        return shown + (_PASSING if status == 429 else "")
    if status not in (200, 404):  # a page, or nothing, where the search should be
        return remedy
    elsewhere = await _elsewhere(urlsplit(address))
    if elsewhere is None:
        return (
            "Correct SEARXNG_HOST. Behind a reverse proxy it has the path of SearXNG, without /search, such as "
            "https://HOST/searxng."
        )
    there = f"Set SEARXNG_HOST={address_of(elsewhere)}, where SearXNG answers."
    if not address.startswith(f"{elsewhere}/") or address.endswith("/search"):
        return there
    lines = f"server:\n  base_url: {address_of(address)}/"
    return (
        f"{there} Or have it answer where you look for it: write this into its settings.yml, and restart it:\n"
        f"{_indented(lines)}"
    )


async def _elsewhere(parts: SplitResult) -> str | None:
    """The address on the same host at which a SearXNG answers: above the path, or below a usual one."""
    names = parts.path.strip("/").split("/")
    above = ["".join(f"/{name}" for name in names[:count]) for count in range(len(names) - 1, 0, -1)]
    for path in list(dict.fromkeys((*above, *_USUAL)))[:_MOST_PROBES]:
        address = parts._replace(path=path, query="", fragment="").geturl()
        if path != parts.path.rstrip("/") and await version_at(address):
            return address
    return None


def _indented(lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines.splitlines())
