"""The console's files are served."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from cragside.bootstrap import Container
from cragside.entrypoints.console import files
from cragside.entrypoints.console.files import static_files
from cragside.entrypoints.http.app import create_app
from cragside.settings import Settings

STATIC = Path(files.__file__).parent / "static"
MOST_COMPRESSED_BYTES = 250_000


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    container = Container(Settings(home=tmp_path, api_token="secret"))  # type: ignore[call-arg]
    transport = httpx.ASGITransport(create_app(container))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client
    await container.close()


@pytest.mark.parametrize("path", sorted(static_files()))
async def test_each_file_needs_no_token_and_has_a_strict_policy(client: httpx.AsyncClient, path: str) -> None:
    reply = await client.get(f"/console/{path}")
    assert (reply.status_code, reply.content) == (200, (STATIC / path).read_bytes())
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"


async def test_the_console_begins_with_its_page(client: httpx.AsyncClient) -> None:
    page = await client.get("/console/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert (await client.get("/console")).headers["location"] == "console/"
    assert (await client.get("/", headers={"Accept": "text/html"})).headers["location"] == "console/"


async def test_other_clients_are_not_led_to_the_console(client: httpx.AsyncClient) -> None:
    assert (await client.get("/", headers={"Accept": "application/json"})).status_code == 404


async def test_a_file_that_did_not_change_is_not_sent_again(client: httpx.AsyncClient) -> None:
    first = await client.get("/console/app.js")
    again = await client.get("/console/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_a_client_without_compression_gets_the_plain_file(client: httpx.AsyncClient) -> None:
    reply = await client.get("/console/app.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in reply.headers
    assert reply.content == (STATIC / "app.js").read_bytes()


@pytest.mark.parametrize("path", ["../files.py", "..%2ffiles.py", "%2e%2e/files.py", "/etc/passwd", "vendor", "no.js"])
async def test_there_is_nothing_but_the_files(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(f"/console/{path}")).status_code == 404


def test_a_file_of_an_unknown_type_does_not_keep_the_others_from_being_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "static").mkdir()
    for name in ("app.js", "app.js~", "README"):
        (tmp_path / "static" / name).write_text("")
    monkeypatch.setattr(files, "files", lambda _: tmp_path)
    served = {path: file.media_type for path, file in static_files.__wrapped__().items()}
    unknown = "application/octet-stream"
    assert served == {"app.js": "text/javascript; charset=utf-8", "app.js~": unknown, "README": unknown}


def test_all_files_together_are_small() -> None:
    assert sum(len(file.packed) for file in static_files().values()) < MOST_COMPRESSED_BYTES
