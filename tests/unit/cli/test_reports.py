"""Lines of a report, from the progress of documents."""

from typing import Any

import pytest

from cragside.entrypoints.cli.offers import IndexingProgress
from cragside.entrypoints.cli.report import Report

DOCUMENT = {
    **{"id": "doc-a", "name": "a.md", "source": "/notes/a.md", "content_hash": "digest", "metadata": {}},
    **{"status": "searchable", "passages": 2, "error": "", "searchable": True, "enrichment": "pending"},
}


def progress(**fields: Any) -> IndexingProgress:
    return IndexingProgress.of({**DOCUMENT, "outcome": "new", **fields})


@pytest.mark.parametrize(
    ("fields", "settled"),
    [
        pytest.param({}, False, id="its annotation waits"),
        pytest.param({"enrichment": "enriched", "status": "enriched"}, True, id="all is done"),
        pytest.param({"enrichment": "none"}, True, id="no annotation is wanted"),
        pytest.param({"status": "failed"}, True, id="a failed document is not waited for, whatever else waits"),
    ],
)
def test_a_document_is_waited_for_until_it_is_done_or_failed(fields: dict[str, Any], settled: bool) -> None:
    assert progress(**fields).settled == settled


@pytest.mark.parametrize(
    ("status", "searchable", "remark"),
    [
        pytest.param("waiting", True, "can be found; the rest follows", id="a run that stopped says what is there"),
        pytest.param("waiting", False, "cannot be found yet", id="a run that stopped says what is not there yet"),
        pytest.param("accepted", True, "can be found; the rest follows", id="a run that does not wait says so too"),
        pytest.param("accepted", False, "cannot be found yet", id="so does a run that does not wait"),
    ],
)
def test_what_is_left_says_if_it_can_be_found(status: str, searchable: bool, remark: str) -> None:
    report = Report()
    report.take("a.md", progress(searchable=searchable))
    report.leave(status)
    assert [(line.status, line.remark) for line in report.lines] == [(status, remark)]
