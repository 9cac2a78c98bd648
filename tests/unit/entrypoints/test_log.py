"""The log of a server tells where something failed, and never quotes what a client sent."""

import io
import json
import logging

import pytest

from cragside.entrypoints.log import logged


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_failure_is_told_without_the_message_of_its_exception(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    prompt = "sesame"
    with logged("info", form):  # type: ignore[arg-type]
        try:
            raise ValueError(prompt)
        except ValueError as error:
            logging.getLogger("cragside").error("POST '/v1/enrich' failed", exc_info=error)
    written = capsys.readouterr().err
    assert "ValueError" in written
    assert "test_log.py" in written
    assert prompt not in written.replace('prompt = "sesame"', "")
    if form == "json":
        assert [json.loads(line)["level"] for line in io.StringIO(written)] == ["error"]
