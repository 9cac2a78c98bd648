"""The audit log records requests to our own routes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cragside.adapters.local.audit_log import AuditFile
from cragside.adapters.local.tokens import TokenFile
from cragside.domain.errors import ConfigurationError
from cragside.domain.tokens import USUAL_SCOPES, TokenScope, new_token
from cragside.entrypoints.http.route_rules import RULES
from tests.clocks import BEGIN
from tests.knowledge import Knowledge

TEXT = "Otters hold hands while they sleep in kelp, so that they do not drift apart."
QUESTION = "What do otters hold while they sleep?"


class Place:
    """A store whose requests are noted, and tokens for it."""

    def __init__(self, home: Path, log: Path) -> None:
        self.log = log
        self.file = TokenFile(home / "tokens.json")
        self.keys = {
            "all": self.key("librarian", USUAL_SCOPES),
            "reader": self.key("reader", frozenset({"read"})),
        }
        self.knowledge = Knowledge(home / "kb", tokens_file=home / "tokens.json", audit_log=str(log))

    def key(self, name: str, scopes: frozenset[TokenScope]) -> dict[str, str]:
        return {"X-API-Key": self.file.create(new_token(name, created=BEGIN, scopes=scopes, workspaces=("w",)))[0]}

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
async def place(tmp_path: Path) -> Any:
    made = Place(tmp_path, tmp_path / "audit.log")
    yield made
    await made.knowledge.close()


async def test_each_event_names_token_action_and_document(place: Place) -> None:
    http, key = place.knowledge.http, place.keys["all"]
    body = {"text": TEXT, "name": "secret-name.md"}
    taken = (await http.post("/v1/documents", json=body, headers=key)).json()["documents"][0]["id"]
    await http.get(f"/v1/documents/{taken}/content", headers=key)
    await http.post("/query", json={"query": QUESTION}, headers=key)
    await http.post("/v1/enrich", json={"prompt": f"/rag {QUESTION}"}, headers=key)
    await http.post("/v1/enrich", json={"prompt": QUESTION}, headers=key)
    await http.patch("/v1/settings", json={"similarity_results": 4}, headers=key)
    await http.get("/v1/documents", headers=key)
    await http.post(f"/v1/documents/{taken}/reprocess", headers=key)
    await http.delete(f"/v1/documents/{taken}", headers=key)
    await http.delete(f"/v1/documents/{taken}", headers=key)
    await http.delete(f"/v1/documents/{taken}", headers=place.keys["reader"])
    await http.get("/v1/documents", headers={"X-API-Key": "crag_wrong"})
    seen = [(event["action"], event["outcome"], event["name"], event["workspace"]) for event in place.events()]
    assert seen == [
        ("ingest", "ok", "librarian", "w"),
        ("read", "ok", "librarian", "w"),
        ("search", "ok", "librarian", "w"),
        ("search", "ok", "librarian", "w"),
        ("settings", "ok", "librarian", "w"),
        ("reprocess", "ok", "librarian", "w"),
        ("delete", "ok", "librarian", "w"),
        ("delete", "failed", "librarian", "w"),
        ("delete", "denied", "reader", None),
        ("request", "denied", "anonymous", None),
    ]
    assert {tuple(event["documents"]) for event in place.events() if event["action"] in ("ingest", "read")} == {
        (taken,)
    }
    first = place.events()[0]
    assert first["who"] == place.file.all()[0].id
    assert first["from"] == "127.0.0.1"
    assert first["at"].endswith("Z")
    assert first["route"] == "POST /v1/documents"


# Actions on one thing that a request names in its body.
NAMED_IN_THE_BODY = {
    "DELETE /documents/delete_document": {"doc_ids": ["thing-1"]},
    "POST /v1/queue/revive": {"document_id": "thing-1"},
}


@pytest.mark.parametrize("who", ["all", "reader"])
@pytest.mark.parametrize(
    "route", sorted({route for route, rule in RULES.items() if rule.action and "{" in route} | set(NAMED_IN_THE_BODY))
)
async def test_an_event_about_one_item_has_its_id(place: Place, route: str, who: str) -> None:
    method, path = route.split(" ")
    body = NAMED_IN_THE_BODY.get(route) or (
        {"source": "/texts/other.md", "name": "other.md"} if method == "PATCH" else None
    )
    path = re.sub(r"\{\w+\}", "thing-1", path)
    answer = await place.knowledge.http.request(method, path, json=body, headers=place.keys[who])
    (event,) = place.events()
    denied = who == "reader" and method != "GET"
    assert event["action"] == RULES[route].action
    assert event["outcome"] == "denied" if denied else event["outcome"] in ("ok", "failed")
    # Nobody reads the body of somebody who may not send it.
    assert event["documents"] == ([] if denied and route in NAMED_IN_THE_BODY else ["thing-1"])
    assert answer.status_code in ((403,) if denied else (200, 404))


async def test_a_page_of_memories_is_read_and_names_the_exchanges_on_it(place: Place) -> None:
    http, key = place.knowledge.http, place.keys["all"]
    for minute in range(2):
        body = {"user": QUESTION, "assistant": TEXT, "date": f"2026-01-01T09:0{minute}:00Z"}
        await http.post("/v1/memories", json=body, headers=key)
    shown = (await http.get("/v1/memories?limit=1", headers=key)).json()["memories"]
    event = place.events()[-1]
    assert (event["action"], event["route"]) == ("read", "GET /v1/memories")
    assert event["documents"] == [each["id"] for each in shown]
    assert len(shown) == 1


@pytest.mark.attack("hostile tokens")
async def test_neither_contents_nor_names_nor_questions_nor_tokens_are_in_it(place: Place) -> None:
    http, key = place.knowledge.http, place.keys["all"]
    await http.post("/v1/documents", json={"text": TEXT, "name": "secret-name.md", "title": "Secret"}, headers=key)
    await http.post("/ingest", json={"items": [{"text": TEXT, "source": "secret-name-2.md"}]}, headers=key)
    await http.post("/documents/text", json={"text": TEXT, "file_source": "secret-name-3.md"}, headers=key)
    await http.post("/v1/memories", json={"user": QUESTION, "assistant": TEXT}, headers=key)
    await http.post("/v1/memories/search", json={"query": QUESTION}, headers=key)
    await http.get("/v1/documents?token=crag_query", headers={"X-API-Key": "crag_wrong"})
    events, said = place.events(), place.log.read_text().lower()
    assert [event["action"] for event in events] == ["ingest"] * 4 + ["search", "request"]
    assert [len(event["documents"]) for event in events] == [1, 1, 1, 1, 0, 0]
    for secret in ("otter", "kelp", "secret", "crag_", *place.keys["all"].values()):
        assert secret.lower() not in said


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize(
    "identifier", ["a%0A%7B%22at%22%3A1%7D", "a%0D%0Ab", "%E2%80%A8x", "%1B%5B2Jx", "%00", "x" * 5000, "%22%7D", "%85"]
)
async def test_no_field_forges_a_line(place: Place, identifier: str) -> None:
    await place.knowledge.http.get(f"/v1/documents/{identifier}", headers=place.keys["reader"])
    content = place.log.read_bytes()
    assert content.count(b"\n") == 1
    assert len(content) < 2000
    assert all(32 <= byte < 127 for byte in content[:-1])
    assert len(place.events()) == 1


@pytest.mark.attack("hostile tokens")
def test_the_file_is_private_and_may_be_rotated(tmp_path: Path) -> None:
    log = AuditFile(str(tmp_path / "audit.log"))
    log.write({"n": 1})
    (tmp_path / "audit.log").rename(tmp_path / "audit.log.1")
    log.write({"n": 2})
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600
    assert [(tmp_path / name).read_text() for name in ("audit.log.1", "audit.log")] == ['{"n": 1}\n', '{"n": 2}\n']


async def test_a_log_that_cannot_be_written_fails_no_request_and_is_warned_of_once(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.log.unlink()
    place.log.mkdir()
    for name in ("a", "b"):
        body = {"text": TEXT, "name": name}
        answer = await place.knowledge.http.post("/v1/documents", json=body, headers=place.keys["all"])
        assert answer.status_code == 202
    warnings = [record for record in caplog.records if "audit log" in record.message]
    assert len(warnings) == 1
    place.log.rmdir()
    await place.knowledge.http.get("/v1/documents/x", headers=place.keys["all"])
    assert len(place.events()) == 1


def test_a_line_cut_off_by_a_full_disk_does_not_damage_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    log, write = AuditFile(str(tmp_path / "audit.log")), os.write
    monkeypatch.setattr(os, "write", lambda descriptor, line: write(descriptor, line[:3]))
    log.write({"n": 1})
    monkeypatch.setattr(os, "write", write)
    log.write({"n": 2})
    assert (tmp_path / "audit.log").read_text().splitlines() == ['{"n', '{"n": 2}']


def test_a_place_that_cannot_be_written_keeps_the_service_from_starting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="RAG_AUDIT_LOG"):
        Knowledge(tmp_path / "kb", audit_log=str(tmp_path / "missing" / "audit.log"))


@pytest.mark.parametrize("place", ["-", "stderr"])
def test_it_goes_to_standard_error(place: str, capfd: pytest.CaptureFixture[str]) -> None:
    AuditFile(place).write({"n": 1})
    assert capfd.readouterr().err == '{"n": 1}\n'
