"""A request that comes back to cragside is refused where it comes back; others carry the marks of their way."""

from typing import Any

import pytest
from proxy_stub import Proxied

from cragside.domain import hops

OTHER = b"0123456789abcdef"


@pytest.mark.parametrize(
    "line",
    ["GET /api/tags", "HEAD /", "POST /api/chat", "POST /v1/chat/completions", "POST /v1/messages", "DELETE /x"],
)
async def test_a_request_that_was_here_is_refused_and_not_forwarded(proxied: Proxied, line: str) -> None:
    reply = await proxied.ask(line, None, (b"X-Cragside-Hops: " + OTHER, b"X-Cragside-Hops: " + hops.marked().encode()))
    assert reply.status == 508
    assert line.startswith("HEAD") or b"leads back to cragside itself" in reply.body
    assert proxied.ollama.connections == 0


async def test_a_request_that_was_here_is_told_so_before_its_token_and_its_host_are_judged(start: Any) -> None:
    proxied = await start(api_token="s3cret")
    reply = await proxied.ask("GET /api/tags", None, (b"X-Cragside-Hops: " + hops.marked().encode(),))
    assert reply.status == 508


async def test_routes_of_our_own_are_no_loop(proxied: Proxied) -> None:
    reply = await proxied.ask("GET /healthz", None, (b"X-Cragside-Hops: " + hops.marked().encode(),))
    assert reply.status == 200


@pytest.mark.parametrize("given", [(), (b"X-Cragside-Hops: " + OTHER + b", junk",)])
async def test_a_forwarded_request_carries_the_marks_of_its_way(proxied: Proxied, given: tuple[bytes, ...]) -> None:
    for line, body in (("GET /api/tags", None), ("POST /api/chat", b"{}")):
        assert (await proxied.ask(line, body, given)).status == 200
        [sent] = proxied.ollama.requests[-1].header(b"x-cragside-hops")
        assert sent.split(b", ") == [*([OTHER] if given else []), hops.marked().encode()]
