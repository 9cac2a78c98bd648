"""A passage is found by a date that it has in another form than the question."""

from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from cragside.bootstrap import Container
from cragside.domain.document import Mark, SourceText
from cragside.settings import load_settings
from cragside.store.backends.interface import Backend
from tests.contract.test_similarity import searchable
from tests.embedding_outage import embedding_outage

ROWS = [f"date: {date(2024, 2, 1) + timedelta(number):%d.%m.%Y}; on duty: {number}" for number in range(250)]


@pytest.fixture
async def container(tmp_path: Path, backend: Backend) -> AsyncIterator[Container]:
    container = Container(load_settings({"RAG_HOME": str(tmp_path)}), backend=backend)
    yield container
    await container.close()


async def test_a_date_is_found_in_another_form(container: Container) -> None:
    text, marks = "", []
    for row in ROWS:
        marks.append(Mark(len(text), apart=True))
        text += f"{row}\n"
    await searchable(container, SourceText("rota.csv", text, marks=tuple(marks)))
    repository = (await container.workspaces.open("default")).passages
    with embedding_outage():
        for asked in ("July 7th", "7. Juli", "le 7 juillet 2024", "2024-07-07"):
            best = (await repository.retrieve(f"duty {asked}", limit=1))[0]
            assert best.content.startswith("date: 07.07.2024")
