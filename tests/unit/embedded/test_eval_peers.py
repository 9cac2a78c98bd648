"""The peers of everyday questions get the same texts, and are judged by the same key."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "evals"))

from everyday import Question, ask_one
from peers import bm25, read_texts, report
from stores import files_in, indexed

from cragside.domain.evidence import Document

ROOF = "The roof of the boathouse was tiled by Ferrers in 1911."
PUMP = "The pump of the boathouse needs oil in March."
TILED = Question("1", "paraphrase", "en", "Who tiled the boathouse roof?", ("roof.md",), (("Ferrers",),))
OILED = Question("2", "keywords", "en", "pump oil month", ("pump.md",), (("March",),))


def passage(name: str, text: str) -> Document:
    return Document(f"{name}: {text}", text, "local", metadata={"filename": name})


def test_bm25_ranks_what_shares_words_and_leaves_out_what_shares_none() -> None:
    search = bm25([passage("pump.md", PUMP), passage("roof.md", ROOF), passage("bread.md", "Bread bakes for an hour.")])
    assert [each.content for each in search("Who TILED the boathouse roof?")] == [ROOF, PUMP]
    assert search("Who is that?") == []


async def test_peers_get_the_passages_and_the_whole_texts_that_cragside_reads(tmp_path: Path) -> None:
    (tmp_path / "pump.csv").write_text("month,oil\nMarch,2 litres\nMay,none\n")
    (tmp_path / "roof.md").write_text(f"# Boathouse\n\n{ROOF}\n")
    async with indexed(files_in(tmp_path)) as container:
        passages, whole = await read_texts(container)
        asked = await ask_one(container, TILED)
    assert [each.metadata["filename"] for each in whole] == ["pump.csv", "roof.md"]
    rows = [each.content for each in passages if each.metadata["filename"] == "pump.csv"]
    assert len(rows) > 1
    assert [row in whole[0].content for row in rows] == [True] * len(rows)
    assert asked.answered
    assert [each.content for each in asked.context.documents] == [passages[-1].content]


def test_the_report_counts_first_documents_answers_and_words(capsys: pytest.CaptureFixture[str]) -> None:
    roof, pump = passage("roof.md", ROOF), passage("pump.md", PUMP)
    report([TILED, OILED], {"one": [[roof, pump], [roof, pump]], "another": [[], [pump]]})
    blocks = capsys.readouterr().out.replace("\n  ", " | ").splitlines()
    assert blocks[0] == "2 questions in one language"
    first, answered, words = ([part.split("(")[0].split() for part in block.split(" | ")[1:]] for block in blocks[1:])
    assert first == [["one", "50.0%"], ["another", "50.0%"]]
    assert answered == [["one", "100.0%"], ["another", "50.0%"]]
    assert words == [["one", "20"], ["another", "4"]]
