"""Tests that preloading leaves nothing to import."""

from pathlib import Path

import pytest

from tests.programs import output_of

pytestmark = pytest.mark.slow

FIRST_REQUEST = """
import asyncio, sys
from cragside.bootstrap import Container, preload
from cragside.domain.document import SourceText
from cragside.settings import load_settings
settings = load_settings({"RAG_HOME": sys.argv[1]})
async def index():
    container = Container(settings)
    await container.intake.text(SourceText("otters", "Sea otters eat urchins."), workspace="default")
    await container.worker().run(until_idle=True)
    await container.close()
async def ask():
    container = Container(settings)
    await container.prepare()
    asked = await container.enricher.enrich({"prompt": "/rag What do sea otters eat?"})
    assert "urchins" in asked.request["prompt"]
    await container.close()
if sys.argv[2] == "index":
    asyncio.run(index())
else:
    Container(settings).build()
    print([name for name in sys.modules if name.startswith("opentelemetry.")])
    preload(settings)
    known = set(sys.modules)
    asyncio.run(ask())
    print(sorted(name for name in set(sys.modules) - known if name.startswith("cragside")))
"""


def test_containers_import_no_opentelemetry_and_requests_after_preloading_nothing_of_cragside(tmp_path: Path) -> None:
    output_of(FIRST_REQUEST, str(tmp_path), "index")
    assert output_of(FIRST_REQUEST, str(tmp_path), "ask").splitlines() == ["[]", "[]"]
