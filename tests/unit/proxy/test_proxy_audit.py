import asyncio
import json

import pytest
from test_proxy_scopes import KEY, QUESTION, issued, started


def events(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


async def test_the_log_records_models_searches_exchanges_and_denials(start, tmp_path):
    log = tmp_path / "audit.log"
    every = issued({"read", "write", "chat", "models"}, workspaces=("w",))
    proxied = await started(start, every, issued("chat", "chatter"), audit_log=str(log), store_exchanges=True)
    body = b'{"message":{"content":"Otters hold hands while they sleep."},"done":true}'
    proxied.ollama.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    plain = {"model": "m", "messages": [{"role": "user", "content": "What do otters do while they sleep?"}]}
    await proxied.ask("DELETE /api/delete", b'{"model": "m"}', KEY)
    await proxied.post("/api/chat", plain, (b"X-API-Key: chatter",))
    await proxied.post("/api/chat", QUESTION, (b"X-API-Key: chatter",))
    await proxied.ask("DELETE /api/delete", b"{}", (b"X-API-Key: chatter",))
    await proxied.ask("GET /v1/documents", None, (b"X-API-Key: wrong",))
    await proxied.post("/api/generate", QUESTION, KEY)
    await proxied.post("/api/chat", plain, KEY)
    async with asyncio.timeout(5):
        while len(events(log)) < 7:
            await asyncio.sleep(0.01)
    seen = [(each["action"], each["outcome"], each["name"], each["workspace"]) for each in events(log)]
    # Exchanges are stored in the background, at some time after their answers.
    assert sorted(seen, key=lambda each: each[0] == "ingest") == [
        ("models", "ok", "token", None),
        ("request", "denied", "chatter", None),
        ("models", "denied", "chatter", None),
        ("request", "denied", "anonymous", None),
        ("search", "ok", "token", "w"),
        ("ingest", "ok", "token", "w"),
        ("ingest", "ok", "token", "w"),
    ]
    assert "otters" not in log.read_text().lower()


@pytest.mark.attack("hostile tokens")
async def test_a_path_forges_no_line(start, tmp_path):
    log = tmp_path / "audit.log"
    proxied = await started(start, issued("chat"), audit_log=str(log))
    await proxied.ask("GET /api/x%0A%7B%22who%22%3A%22root%22%7D", None, KEY)
    (event,) = events(log)
    assert event["outcome"] == "denied"
    assert log.read_bytes().count(b"\n") == 1
