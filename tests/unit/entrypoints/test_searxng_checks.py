"""`doctor` examines a SearXNG that does not answer a search, and shows the lines that make it answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from cragside.adapters.searxng import SearxngSearch
from cragside.bootstrap import Container
from cragside.entrypoints.component_checks import FOR_OPERATORS, Finding, examine_searxng
from cragside.settings import Settings

RESULTS = json.dumps({"results": [{"title": "t", "url": "https://t.example/", "content": "c"}]})
CONFIG = json.dumps({"version": "2026.1.2", "engines": []})


@dataclass
class Host:
    """A raw HTTP server: a SearXNG at `path`, and what else is asked gets `other`."""

    path: str = ""
    search: tuple[int, str] = (200, RESULTS)
    other: tuple[int, str] = (404, "<html>Not Found</html>")
    asked: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        self.asked.append(target)
        answers = {f"{self.path}/search": self.search, f"{self.path}/config": (200, CONFIG)}
        status, body = answers.get(target.partition("?")[0], self.other)
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write((head + body).encode())
        writer.close()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        async with server:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def examined(host: Host, path: str = "", credentials: str = "") -> tuple[Finding, str]:
    """The finding, and the address of the host."""

    async def rewrite(query: str, _: str | None) -> str:
        return query

    async with host.listening() as place:
        settings = Settings(searxng_host=f"http://{credentials}{place}{path}")
        search = SearxngSearch(str(settings.searxng_host), rewrite)
        (finding,) = await examine_searxng(Container(settings, search=search), FOR_OPERATORS)
        await search.close()
    return finding, f"http://{place}"


def lines_in(remedy: str) -> Any:
    """The lines for settings.yml."""
    behind = remedy.partition("estart it:\n")[2]
    return yaml.safe_load("\n".join(line for line in behind.splitlines() if line.startswith("  ") and "[" not in line))


@pytest.mark.parametrize("path", ["", "/searxng", "/a/b"])
async def test_a_path_in_the_address_is_asked_below(path: str) -> None:
    finding, _ = await examined(Host(path), f"{path}/")
    assert (finding.state, finding.version) == ("ok", "2026.1.2")


@pytest.mark.parametrize("path", ["", "/searxng"])
async def test_a_searxng_without_json_is_told_its_formats(path: str) -> None:
    finding, _ = await examined(Host(path, search=(403, "<html>Forbidden</html>")), path)
    assert (finding.state, "refused JSON (403)" in finding.detail) == ("error", True)
    assert lines_in(finding.remedy) == {"search": {"formats": ["html", "json"]}}


async def test_a_searxng_with_a_limiter_is_told_how_to_let_cragside_pass() -> None:
    finding, _ = await examined(Host(search=(429, "Too Many Requests")))
    assert (finding.state, "limits our requests (429)" in finding.detail) == ("error", True)
    shown, _, passing = finding.remedy.partition("\nTo keep")
    assert lines_in(shown) == {"server": {"limiter": False}}
    assert "pass_ip = [" in passing


@pytest.mark.parametrize(
    ("there", "looked", "other"),
    [
        ("/searxng", "", (404, "<html>Not Found</html>")),
        ("/searxng", "", (200, "<html>Welcome</html>")),
        ("/searx", "", (200, '{"welcome": true}')),
        ("/searx", "/searxng", (404, "")),
        ("/searxng", "/searxng/search", (404, "")),
        ("/a/b", "/a/b/search", (404, "")),
        ("", "/search", (404, "")),
    ],
)
async def test_a_wrong_path_is_told_with_the_right_one(there: str, looked: str, other: tuple[int, str]) -> None:
    finding, host = await examined(Host(there, other=other), looked, "alice:s3cret@")
    assert finding.state == "error"
    assert f"Set SEARXNG_HOST={host}{there}, where" in finding.remedy
    assert "settings.yml" not in finding.remedy
    assert "s3cret" not in finding.detail + finding.remedy


async def test_a_searxng_that_does_not_know_its_path_is_told_its_base_url() -> None:
    finding, host = await examined(Host(), "/searxng")
    assert f"Set SEARXNG_HOST={host}, where" in finding.remedy
    assert lines_in(finding.remedy) == {"server": {"base_url": f"{host}/searxng/"}}


@pytest.mark.parametrize("other", [(404, ""), (200, "<html>a shop</html>")])
async def test_a_host_without_a_searxng_is_told_what_a_path_is_for(other: tuple[int, str]) -> None:
    host = Host("/elsewhere", other=other)
    finding, _ = await examined(host, "/x/y/z/and/many/more")
    assert "it has the path of SearXNG" in finding.remedy
    assert len(host.asked) <= 8


async def test_a_password_that_a_proxy_asks_for_is_told() -> None:
    finding, _ = await examined(Host(search=(401, "")))
    assert "wants a password (401)" in finding.detail
    assert "https://NAME:PASSWORD@HOST" in finding.remedy
