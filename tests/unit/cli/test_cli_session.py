import logging

import pytest

from cragside.entrypoints.cli.session import Session
from cragside.settings import Settings


@pytest.fixture
def lightrag(monkeypatch):
    """LightRAG's logger with what it lets through, as it was before afterwards."""
    logger = logging.getLogger("lightrag")
    monkeypatch.setattr(logger, "filters", [])
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    monkeypatch.setattr(logger, "handlers", [handler])
    logger.said = said
    level = logger.level
    yield logger
    logger.setLevel(level)
    del logger.said


@pytest.mark.parametrize(("debug", "said"), [(False, ["lost"]), (True, ["slow", "Traceback ...", "lost"])])
def test_stack_traces_of_the_engine_are_for_debugging(tmp_path, lightrag, debug, said):
    async def work(_container):
        lightrag.setLevel(logging.INFO)  # as LightRAG does when it is imported first
        lightrag.info("noise")
        lightrag.warning("slow")
        lightrag.error("Traceback ...")
        lightrag.critical("lost")

    Session(debug=debug).run(Settings(home=tmp_path), work)
    assert lightrag.said == said
