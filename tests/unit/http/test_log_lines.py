"""Text from a client reaches the log only in escaped form."""

from pathlib import Path
from unittest.mock import AsyncMock
from urllib.parse import quote

import pytest

from cragside.store.workspaces import Workspaces
from tests.knowledge import Knowledge


@pytest.mark.attack("hostile tokens")
@pytest.mark.parametrize("route", ["/v1/documents", "/documents/track_status"])
@pytest.mark.parametrize("hostile", ["\x1b[2J", "\u2028", "\x85", "\n"])
async def test_no_path_writes_control_characters_to_the_log(
    route: str, hostile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    knowledge = Knowledge(tmp_path)
    monkeypatch.setattr(Workspaces, "open", AsyncMock(side_effect=RuntimeError("broken")))
    try:
        answer = await knowledge.http.get(f"{route}/x{quote(hostile)}forged")
    finally:
        await knowledge.close()
    assert answer.status_code == 500
    told = [record.getMessage() for record in caplog.records if "failed" in record.getMessage()]
    assert [("forged" in line, line.isprintable()) for line in told] == [(True, True)]
