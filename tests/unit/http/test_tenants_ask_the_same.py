"""Two tenants that ask the same at the same time get their own documents, over HTTP."""

import asyncio
import json
from typing import Any

import httpx
from pydantic import SecretStr

from cragside.application.enricher import Enricher, EvidenceRequest
from cragside.application.preferences import PreferenceStore, WorkspacePreferences
from cragside.bootstrap import Container
from cragside.domain.evidence import Document
from cragside.domain.outcome import Findings
from cragside.domain.preferences import Preferences
from cragside.entrypoints.http.app import create_app
from cragside.settings import Settings
from tests.fakes import FakeRepository, FakeWorkspaces

TOKENS = {"token-of-ours": ["ours"], "token-of-theirs": ["theirs"], "token-of-both": ["ours", "theirs"]}


class Unchanged(PreferenceStore):
    async def changes(self, workspace: str) -> dict[str, Any]:
        return {}


class BothAsked:
    """Answers with the name of the workspace, once both workspaces were asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.both = asyncio.Event()

    async def find(self, request: EvidenceRequest) -> Findings:
        self.asked.append(request.workspace)
        if set(self.asked) == {"ours", "theirs"}:
            self.both.set()
        await self.both.wait()
        secret = Document("d", f"the secret of {request.workspace}", "local", score=0.9)
        return Findings(secret.content, (secret,), search_performed=False)


async def test_tenants_that_ask_the_same_get_their_own_documents() -> None:
    finder: Any = BothAsked()
    workspaces: Any = FakeWorkspaces(FakeRepository())
    preferences = WorkspacePreferences(Preferences(1000, 200, 5, None, "similarity"), Unchanged())
    enricher = Enricher(
        {"corrective": finder},
        workspaces,
        preferences,
        prefix="/rag",
        default_workspace="ours",
        timeout=30,
        fail_mode="open",
        question_limit=100,
        evidence_tokens=3000,
    )
    settings = Settings(workspace_tokens=SecretStr(json.dumps(TOKENS)))
    app = create_app(Container(settings, enricher=enricher, workspaces=workspaces))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://cragside") as client:

        async def answer(token: str, workspace: str) -> httpx.Response:
            body = {"prompt": "/rag what?", "workspace": workspace}
            return await client.post("/v1/enrich", json=body, headers={"Authorization": f"Bearer {token}"})

        asked = [("token-of-ours", "ours"), ("token-of-theirs", "theirs"), ("token-of-both", "theirs")]
        refused = await answer("token-of-theirs", "ours")
        answers = await asyncio.gather(*(answer(*each) for each in asked))
    assert refused.status_code == 401
    assert [each.json()["prompt"] for each in answers] == [f"the secret of {name}\n\nwhat?" for _, name in asked]
    assert sorted(finder.asked) == ["ours", "theirs"]
