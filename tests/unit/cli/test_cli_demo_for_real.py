"""The demo as a newcomer sees it: the real container, embedded models, no server."""

import re

import pytest
from cli_services import printed
from typer.testing import CliRunner

from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session


@pytest.fixture(scope="module")
def pages():
    said = printed(CliRunner().invoke(app, ["demo"], obj=Session(environment={})))
    return {page.split("\n", 1)[0]: page for page in re.split(r"^(?=\d\. |Summary )", said, flags=re.MULTILINE)}


def page(pages, words):
    (found,) = [text for heading, text in pages.items() if words in heading]
    return found


def test_a_local_hit_distinguishes_namesakes(pages):
    shown = page(pages, "namesakes")
    assert "Verdict  local" in shown
    assert "mercury-planet.md" in shown
    assert "freddie-mercury.md" not in shown


def test_one_answer_comes_from_two_documents(pages):
    shown = page(pages, "two documents")
    for name in ("cragside-house.md", "william-armstrong.md"):
        assert name in shown


def test_a_question_beyond_the_corpus_says_that_the_web_could_not_be_asked(pages):
    shown = page(pages, "cannot answer")
    assert "Verdict  none" in shown
    assert "SEARXNG_HOST is not set" in shown


def test_a_plain_prompt_is_untouched(pages):
    assert "Verdict  untouched" in page(pages, "plain prompt")


def test_an_injection_attempt_is_defused(pages):
    shown = page(pages, "injection")
    assert "tide-tables.md" in shown
    assert shown.count("</evidence-") == 1
    assert "<|im_start|>" not in shown
    assert "Defused  5 control tokens" in shown
