"""`cragside ask`: the answer with its sources, or the evidence and what an answer takes."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_services import errors_of, printed
from typer.testing import CliRunner

from cragside.application.answerer import Answer
from cragside.bootstrap import Container
from cragside.domain.errors import ServiceUnavailable
from cragside.domain.evidence import Document
from cragside.domain.outcome import Degradation, RagContext
from cragside.entrypoints.cli.app import app
from cragside.entrypoints.cli.session import Session

OTTER = Document(
    "1", "Otters eat urchins.", "local", "Sea otter", score=0.91, metadata={"filename": "otter.md", "page": 3}
)
CONTEXT = RagContext("why?", (OTTER,), search_performed=False, processing_time_ms=1, verdict="local", threshold=0.6)


class Scripted:
    """Answers with these pieces, and notes what it was asked."""

    def __init__(self, *pieces: str | Exception) -> None:
        self.pieces = pieces
        self.context = CONTEXT
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def answer(self, question: str, **options: Any) -> Answer:
        self.asked.append((question, options))
        if not self.pieces:
            return Answer(self.context, reason="Ollama does not answer. Start it.")
        return Answer(self.context, "m:latest", self._written())

    async def _written(self) -> AsyncIterator[str]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


class Asking:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.answerer = Scripted("Urchins", " [1].")

    def __call__(self, *arguments: str) -> Any:
        def build(settings: Any) -> Container:
            return Container(settings, answerer=self.answerer)

        session = Session(environment={"RAG_HOME": str(self.home)}, build=build)
        return CliRunner().invoke(app, ["ask", *arguments], obj=session)


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path / "home")


def test_the_answer_comes_with_its_sources(asking: Asking) -> None:
    assert printed(asking("What do otters eat?")) == "Urchins [1].\n\nSources\n[1] Sea otter (otter.md, page 3)\n"
    assert asking.answerer.asked == [("What do otters eat?", {"history": [], "model": None, "workspace": "default"})]


@pytest.mark.attack("forged citations")
def test_a_title_cannot_look_like_another_source(asking: Asking) -> None:
    forged = Document("2", "Pay K7.", "local", "[1] Board minutes (p. 3)", score=0.9, metadata={"filename": "[3] x.md"})
    asking.answerer.context = replace(CONTEXT, documents=(OTTER, forged))
    sources = asking("What?").stdout.partition("Sources")[2]
    assert re.findall(r"\[\d+\]", sources) == ["[1]", "[2]"]


def test_an_answer_cannot_steer_the_terminal(asking: Asking) -> None:
    asking.answerer = Scripted("Ur\x1b[2J", "chins")
    assert "\x1b" not in asking("What?").stdout


def test_the_model_and_the_workspace_can_be_named(asking: Asking) -> None:
    asking("-m", "mine", "-w", "sea", "What?")
    assert asking.answerer.asked[0][1] == {"history": [], "model": "mine", "workspace": "sea"}


def test_a_conversation_goes_on(asking: Asking) -> None:
    asking("What do otters eat?")
    asking("-c", "And where?")
    turns = [
        {"role": "user", "content": "What do otters eat?"},
        {"role": "assistant", "content": "Urchins [1]."},
    ]
    assert asking.answerer.asked[1][1]["history"] == turns
    asking("-c", "And when?")
    assert len(asking.answerer.asked[2][1]["history"]) == 4
    asking("Something else?")
    asking("-c", "Why?")
    assert asking.answerer.asked[4][1]["history"][0]["content"] == "Something else?"


def test_a_conversation_goes_on_without_a_model(asking: Asking) -> None:
    asking.answerer = Scripted()
    asking("What do otters eat?")
    asking("-c", "And where?")
    asking("-c", "And when?")
    questions = [turn["content"] for turn in asking.answerer.asked[2][1]["history"]]
    assert questions == ["What do otters eat?", "And where?"]


def test_without_a_conversation_there_is_nothing_to_continue(asking: Asking) -> None:
    assert "no conversation to continue" in errors_of(asking("-c", "And where?"), 2)


def test_json_is_one_document(asking: Asking) -> None:
    told = json.loads(asking("--json", "What?").stdout)
    assert (told["model"], told["answer"]) == ("m:latest", "Urchins [1].")
    assert told["rag_context"]["documents"][0]["title"] == "Sea otter"


def test_without_a_model_the_evidence_is_shown(asking: Asking) -> None:
    asking.answerer = Scripted()
    result = asking("What?")
    assert result.exit_code == 0
    assert "[1] Otters eat urchins." in result.stdout
    assert "Ollama does not answer. Start it." in result.stderr
    assert json.loads(asking("--json", "What?").stdout)["answer"] is None


def test_an_answer_that_breaks_off_is_not_remembered(asking: Asking) -> None:
    asking.answerer = Scripted("Urch", ServiceUnavailable("ollama", "Ollama took too long to answer"))
    assert "took too long" in errors_of(asking("What?"), 3)
    assert asking("-c", "And?").exit_code == 2


@pytest.mark.parametrize("written", [(), ("I do not know.",)])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_knowledge_base_that_cannot_be_read_ends_with_3(
    asking: Asking, written: tuple[str, ...], options: tuple[str, ...]
) -> None:
    asking.answerer = Scripted(*written)
    lost = Degradation("knowledge_base", "The knowledge base has no tables yet: run cragside migrate.")
    asking.answerer.context = replace(CONTEXT, documents=(), degraded=(lost,))
    result = asking(*options, "What?")
    assert (result.exit_code, bool(result.stdout)) == (3, True)
    assert result.stderr.endswith(f"error: {lost.reason}\n")


def test_evidence_from_elsewhere_is_enough(asking: Asking) -> None:
    asking.answerer.context = replace(CONTEXT, degraded=(Degradation("knowledge_base", "It is away."),))
    assert asking("What?").exit_code == 0
