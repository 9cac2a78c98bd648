"""Pages for browsers: the list of our routes, and the icon. They say only what the documentation says, to anybody."""

import asyncio
from html import escape
from typing import Any

from fastapi import APIRouter, Request, Response

# The page that a browser gets at `/`.
START = "/console/"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "max-age=3600",
}
_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="6" fill="#37474f"/>'
    '<path d="M4 26 13 9l5 8 3-4 7 13z" fill="#fff"/></svg>'
)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>cragside</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="favicon.ico">
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
td {{ padding: .15rem 1rem .15rem 0; vertical-align: top }} code {{ white-space: nowrap }}
</style></head><body>
<h1>cragside {version}</h1>
<p>This server adds graded, cited evidence to Ollama prompts that begin with the command (<code>/rag</code> unless
configured otherwise). Point an Ollama client at this address. All other requests pass through to Ollama.</p>
<p><a href="healthz">Is it alive?</a> <a href="ready">Is it ready?</a> The routes in OpenAPI's form are at
<a href="openapi.json">openapi.json</a>, which needs the token if the server has one.</p>
{sections}
</body></html>
"""

router = APIRouter(include_in_schema=False)


@router.api_route("/docs", methods=["GET", "HEAD"])
async def docs(request: Request) -> Response:
    """A page with our routes."""
    document = await asyncio.to_thread(request.app.openapi)
    return Response(_page(document), media_type="text/html", headers=_HEADERS)


@router.api_route("/favicon.ico", methods=["GET", "HEAD"])
async def favicon() -> Response:
    """The icon."""
    return Response(_ICON, media_type="image/svg+xml", headers=_HEADERS)


def _page(document: dict[str, Any]) -> str:
    rows: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            description, _, _ = (operation.get("description") or operation.get("summary", "")).partition("\n")
            row = f"<tr><td><code>{method.upper()} {escape(path)}</code></td><td>{escape(description)}</td>"
            rows.setdefault(operation["tags"][0], []).append(row)
    sections = [f"<h2>{escape(tag)}</h2><table>{''.join(each)}</table>" for tag, each in rows.items()]
    return _PAGE.format(version=escape(document["info"]["version"]), sections="\n".join(sections))
