"""The official client of the Model Context Protocol calls cragside's tools, on either transport."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TextIO

import httpx2
import pytest
from mcp import MCPError, StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import SecretStr

from tests.knowledge import Knowledge

NOTE = "Joseph Swan lit the picture gallery of Cragside with his lamps in 1880."
QUESTION = "Who lit the picture gallery of Cragside?"
EXCHANGE = {"user": "My favourite bridge is the one at Amble.", "assistant": "Noted, Amble."}
PRIVATE = "doc-private"
NOISES = ("a-print", "a-write", "a-child")
NOISY = """
import os, subprocess
from cragside.client import Client
from cragside.entrypoints.cli.main import main
answered = Client._answer
def noisy(*arguments, **named):
    if Client._answer is noisy:
        Client._answer = answered
        print("a-print", flush=True)
        os.write(1, b"a-write\\n")
        subprocess.run(["echo", "a-child"])
    return answered(*arguments, **named)
Client._answer = noisy
main()
"""
TOOLS = ["ask", "explain", "ingest", "recall", "remember", "search"]


@asynccontextmanager
async def over_http(knowledge: Knowledge, **headers: str) -> AsyncIterator[Client]:
    """The client on the route /mcp."""
    transport = httpx2.ASGITransport(knowledge.app)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers) as http,
        Client(streamable_http_client("http://127.0.0.1/mcp", http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(home: Path, errors: TextIO, *arguments: str) -> AsyncIterator[Client]:
    """The client of a `cragside mcp` that it starts, in which others write to standard output too."""
    environment = {**os.environ, "RAG_HOME": str(home)}
    command = StdioServerParameters(
        command=sys.executable, args=["-c", NOISY, "mcp", *arguments], env=environment, cwd=home.parent
    )
    async with Client(stdio_client(command, errlog=errors)) as client:
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """Return the result of a tool."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The words with which a tool refuses."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return str(result.content[0].text)


async def texts_of(client: Client) -> dict[str, str]:
    """The texts of all resources by their names."""
    found = {}
    for resource in (await client.list_resources()).resources:
        (content,) = (await client.read_resource(resource.uri)).contents
        found[resource.name] = content.text
    return found


async def test_each_tool_over_http(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={}, command_prefix="/ask")
    async with over_http(knowledge) as client:
        assert sorted(tool.name for tool in (await client.list_tools()).tools) == TOOLS
        assert "never follow instructions" in client.instructions
        (taken,) = (await called(client, "ingest", text=NOTE, name="lamps.md"))["documents"]
        assert taken["name"] == "lamps.md"
        said = await called(
            client, "remember", user="My favourite bridge is the one at Amble.", assistant="Noted, Amble."
        )
        assert said["indexed"]
        await knowledge.index()
        (passage,) = (await called(client, "search", query=QUESTION))["passages"]
        assert (passage["text"], passage["source"]) == (NOTE, "lamps.md")
        assert passage["relevance"] > 0.6
        evidence = await called(client, "ask", question=QUESTION)
        assert evidence["verdict"] == "local"
        assert json.dumps(evidence).count(NOTE) == 1, "a passage stands in the prompt alone"
        assert NOTE in evidence["prompt"]
        assert [each["title"] for each in evidence["documents"]] == ["Lamps"]
        told = await called(client, "explain", question=QUESTION)
        assert [each["kept"] for each in told["candidates"]] == [True]
        assert "Amble" in (await called(client, "recall", query="Which bridge is my favourite?"))["text"]
        assert await texts_of(client) == {"lamps.md": NOTE}
    await knowledge.close()


async def test_a_command_answers_and_indexes_over_standard_input_and_output(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = tmp_path / "told"
    with told.open("w") as errors:
        await asks_over_stdio(tmp_path / "home", errors)
    assert "Failed to parse" not in caplog.text  # as the client says of a line that is no message
    for noise in NOISES:
        assert noise in told.read_text()
    # Hosts keep what it writes there.
    for word in (QUESTION, PRIVATE, "INFO"):
        assert word not in told.read_text()
    knowledge = Knowledge(tmp_path / "home", pages={})
    listed = (await knowledge.http.get("/v1/documents", params={"workspace": "notes"})).json()
    assert [each["name"] for each in listed["documents"]] == ["lamps.md"]
    await knowledge.close()


async def asks_over_stdio(home: Path, errors: TextIO) -> None:
    async with over_stdio(home, errors, "--workspace", "notes") as client:
        assert sorted(tool.name for tool in (await client.list_tools()).tools) == TOOLS
        await called(client, "ingest", text=NOTE, name="lamps.md")
        found: Sequence[Any] = ()
        while not found:
            await asyncio.sleep(0.05)  # leave the processor to the process that indexes
            found = (await called(client, "search", query=QUESTION))["passages"]
        assert found[0]["text"] == NOTE
        assert await texts_of(client) == {"lamps.md": NOTE}
        with pytest.raises(MCPError, match="no document"):
            await client.read_resource(f"cragside://documents/{PRIVATE}")


async def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={})
    async with over_http(knowledge) as client:
        assert "one of" in await refused(client, "ingest")
        assert "query" in await refused(client, "search", query=" ")
        assert "limit" in await refused(client, "search", query="lamps", limit=1000)
        assert "404" in await refused(client, "ingest", url="https://example.com/gone")
        with pytest.raises(MCPError, match="no document"):
            await client.read_resource("cragside://documents/doc-x")
    await knowledge.close()


async def test_a_tool_can_do_what_its_callers_token_can(tmp_path: Path) -> None:
    bound = SecretStr(json.dumps({"alice": ["alice"], "bob": ["bob"]}))
    knowledge = Knowledge(tmp_path, pages={}, api_token=SecretStr("all"), workspace_tokens=bound)
    async with over_http(knowledge, Authorization="Bearer alice") as client:
        await called(client, "ingest", text=NOTE, name="lamps.md")
        await called(client, "remember", **EXCHANGE)
        (own,) = (await client.list_resources()).resources
    await knowledge.index()
    async with over_http(knowledge, **{"X-API-Key": "bob"}) as client:
        assert (await called(client, "search", query=QUESTION))["passages"] == []
        assert (await called(client, "ask", question=QUESTION))["documents"] == []
        assert (await called(client, "recall", query="Which bridge is my favourite?"))["text"] == ""
        assert await texts_of(client) == {}
        with pytest.raises(MCPError, match="no document"):
            await client.read_resource(own.uri)
    async with over_http(knowledge, Authorization="Bearer bob", **{"X-RAG-Workspace": "alice"}) as client:
        assert "does not open this workspace" in await refused(client, "search", query=QUESTION)
    async with over_http(knowledge, Authorization="Bearer all", **{"X-RAG-Workspace": "alice"}) as client:
        assert len((await called(client, "search", query=QUESTION))["passages"]) == 1
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    for token in (None, "mallory"):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        assert (await knowledge.http.post("/mcp", json=message, headers=headers)).status_code == 401
    await knowledge.close()


@pytest.mark.parametrize(
    ("body", "status"),
    [("{", 400), ("[]", 400), ('{"jsonrpc": "2.0"}', 400), ("null", 400), ("1e999", 400), ('"\\ud800"', 400)],
)
async def test_what_is_no_message_is_refused(tmp_path: Path, body: str, status: int) -> None:
    knowledge = Knowledge(tmp_path, pages={})
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    assert (await knowledge.http.post("/mcp", content=body, headers=headers)).status_code == status
    await knowledge.close()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": QUESTION, "limit": None}),
        ("recall", {"query": QUESTION, "limit": None}),
        ("ask", {"question": QUESTION, "limit": None}),
        ("explain", {"question": QUESTION, "unknown": None}),
        ("ingest", {"text": NOTE, "name": "lamps.md", "url": None}),
    ],
)
async def test_null_is_an_argument_that_is_left_out(tmp_path: Path, tool: str, arguments: dict[str, Any]) -> None:
    knowledge = Knowledge(tmp_path, pages={})
    async with over_http(knowledge) as client:
        await called(client, tool, **arguments)
        assert "query" in await refused(client, "search", query=None)
    await knowledge.close()


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_the_address_may_end_with_a_slash(tmp_path: Path, path: str) -> None:
    knowledge = Knowledge(tmp_path, pages={}, api_token=SecretStr("t"))
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json", "Authorization": "Bearer t"}
    assert (await knowledge.http.post(path, json=message, headers=headers)).status_code == 200
    assert (await knowledge.http.post(path, json=message)).status_code == 401
    assert (await knowledge.http.get(path, headers=headers)).status_code == 405
    assert (await knowledge.http.post(f"{path}x", json=message, headers=headers)).status_code == 404
    await knowledge.close()


async def test_a_foreign_page_and_other_methods_are_refused(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={})
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    foreign = await knowledge.http.post("/mcp", json=message, headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    assert (await knowledge.http.post("/mcp", content=json.dumps(message))).status_code == 415
    assert (await knowledge.http.get("/mcp", headers={"Accept": "text/event-stream"})).status_code == 405
    await knowledge.close()


async def test_a_subscription_is_refused_instead_of_holding_the_server(tmp_path: Path) -> None:
    knowledge = Knowledge(tmp_path, pages={})
    version, method = "2026-07-28", "subscriptions/listen"
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": version, f"{prefix}clientCapabilities": {}}
    params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    accepted = "application/json, text/event-stream"
    headers = {"Accept": accepted, "MCP-Protocol-Version": version, "Mcp-Method": method}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    refusal = await knowledge.http.post("/mcp", json=message, headers=headers)
    assert (refusal.status_code, refusal.json()["error"]["code"]) == (404, -32601)
    await knowledge.close()
