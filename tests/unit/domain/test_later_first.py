"""Of two passages that answer equally the later one comes first, and the earlier one is marked."""

from dataclasses import replace

import pytest

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.domain.dating import later_first
from cragside.domain.evidence import Document

MATCHER = EmbeddedGrader(WordLlamaEmbedder())
QUESTION = "What is the fee for the boat shed?"
OLD = "The fee for the boat shed is 40 euros."
NEW = "From now on the fee for the boat shed is 55 euros."


def passage(identifier: str, text: str, date: str | None, score: float, document: str = "") -> Document:
    metadata = {"documentId": document or identifier, "filename": f"{identifier}.md"}
    return Document(
        identifier, text, "local", "Shed", score=score, metadata={**metadata, **({"date": date} if date else {})}
    )


async def order(question: str, *documents: Document) -> list[str]:
    """The ids in their order, each earlier one with the id of the later one behind it."""
    words = await MATCHER.matches(question, documents, near=True)
    found = later_first(question, documents, words, 0.6)
    return [each.id + ("<" + each.metadata["earlierThan"] if "earlierThan" in each.metadata else "") for each in found]


async def test_the_later_one_comes_first_and_the_earlier_one_is_marked() -> None:
    assert await order(QUESTION, passage("old", OLD, "2023", 0.9), passage("new", NEW, "2024-05", 0.8)) == [
        "new",
        "old<new",
    ]
    assert await order(QUESTION, passage("new", NEW, "2024-05", 0.9), passage("old", OLD, "2023", 0.8)) == [
        "new",
        "old<new",
    ]


@pytest.mark.parametrize(
    ("text", "date", "score", "document"),
    [
        (NEW, None, 0.8, ""),  # nobody knows of when it is
        (NEW, "2023", 0.8, ""),  # it may be of the same day
        (NEW, "2024", 0.62, ""),  # it answers less well
        ("The shed is green.", "2024", 0.8, ""),  # it is about another thing
        (NEW, "2024", 0.8, "old"),  # it is of the same document
    ],
)
async def test_passages_that_do_not_answer_equally_keep_their_order(
    text: str, date: str | None, score: float, document: str
) -> None:
    assert await order(QUESTION, passage("old", OLD, "2023", 0.9), passage("new", text, date, score, document)) == [
        "old",
        "new",
    ]


async def test_words_of_the_question_far_from_each_other_do_not_count() -> None:
    near, gap = "The yearly fee for the winter is 40 euros a boat.", " It sails on." * 60
    far = f"The boat is old.{gap} The winter is cold.{gap} There is a fee.{gap} It is a yearly matter."
    old = passage("old", near, "2023", 0.9)
    question = "What is the yearly fee for a boat in winter?"
    assert await order(question, old, passage("new", near, "2024", 0.85)) == ["new", "old<new"]
    assert await order(question, old, passage("new", far, "2024", 0.85)) == ["old", "new"]


@pytest.mark.parametrize(
    "question",
    [
        "What was the fee for the boat shed in 2023?",
        "What is the fee for the boat shed according to the 2023 list?",
        "What was the fee for the boat shed before May 2024?",
        "What was the fee for the boat shed originally?",
        "What is the fee for the boat shed in the March minutes?",
        "What is the fee for the boat shed, says the list of 4 March?",
    ],
)
async def test_a_question_that_names_the_earlier_time_gets_the_earlier_one_first(question: str) -> None:
    old, new = passage("old", OLD, "2023-03-04", 0.8), passage("new", NEW, "2024-05-02", 0.9)
    assert await order(question, new, old) == ["old", "new"]
    assert await order(question, old, new) == ["old", "new"]


@pytest.mark.parametrize("question", ["the fee for the boat shed since 2024", "fee for the boat shed in May 2024"])
async def test_a_question_that_names_the_later_time_gets_the_later_one_first(question: str) -> None:
    old, new = passage("old", OLD, "2023-03-04", 0.9), passage("new", NEW, "2024-05-02", 0.8)
    assert await order(question, old, new) == ["new", "old<new"]


async def test_a_question_that_asks_for_both_keeps_the_order() -> None:
    old = passage("old", "The fee for the boat shed A12 is 40 euros.", "2023", 0.9)
    new = passage("new", "The fee for the boat shed A14 is 55 euros.", "2024", 0.85)
    assert await order("Is the fee for the boat shed higher in A12 or A14?", old, new) == ["old", "new"]


@pytest.mark.parametrize(
    ("question", "other"), [("electricity boat shed march", "april"), ("Strom Bootsschuppen Mai", "Juni")]
)
async def test_a_later_month_does_not_come_before_the_one_that_is_asked_for(question: str, other: str) -> None:
    thing, _, month = question.rpartition(" ")
    asked = passage("asked", f"{thing} {month}: 40 kWh", "2025-03-31", 0.9)
    assert await order(question, asked, passage("later", f"{thing} {other}: 55 kWh", "2025-05-31", 0.8)) == [
        "asked",
        "later",
    ]


async def test_several_versions_stand_latest_first_and_nothing_is_dropped() -> None:
    versions = [passage(str(year), OLD, str(year), 0.9 - (year - 2020) / 100) for year in (2021, 2022, 2023)]
    other = passage("other", "Kelp grows.", None, 0.88)
    assert await order(QUESTION, versions[0], other, *versions[1:]) == ["2023", "2022<2023", "2021<2023", "other"]


async def test_no_other_passage_helps_a_later_one_ahead_of_a_better_one() -> None:
    honest = passage("honest", OLD, "2023", 0.95)
    chain = [passage("planted", NEW, "2024-05", 0.71), passage("second", NEW, "2024-06", 0.61)]
    assert (await order(QUESTION, honest, *chain))[-1] == "second"
    undated = passage("undated", OLD, None, 0.95)
    old = passage("old", OLD, "2001", 0.96)
    found = await order(QUESTION, old, undated, chain[0])
    assert [each.partition("<")[0] for each in found] == [
        "old",
        "undated",
        "planted",
    ]


async def test_a_question_of_nothing_but_months_is_read_in_one_pass() -> None:
    documents = [passage("old", OLD, "2023", 0.9), passage("new", NEW, "2024-05", 0.8)]
    for months in ("may ", "in march ", "31 february 2025 "):
        assert len(await order(months * 8000, *documents)) == 2


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        (
            "Is the harbour dinner on 12 June?",
            "The harbour dinner is on 12 June in the boat hall. Tickets cost 25 euros.",
            "The harbour dinner moves to 19 June, because the hall is taken. Tickets keep their price.",
        ),
        (
            "Will the lift be inspected on 4 March 2025?",
            "The lift is inspected on 4 March 2025 by Alder Ltd. The lobby stays open.",
            "The lift is inspected on 18 March 2025 instead, because Alder Ltd. has no time. The lobby stays open.",
        ),
        (
            "Findet die Elternversammlung am 12. März statt?",
            "Die Elternversammlung findet am 12. März um 19 Uhr im Turnraum statt. Bitte Hausschuhe mitbringen.",
            "Die Elternversammlung ist auf den 26. März verschoben. Sie beginnt wie geplant um 19 Uhr im Turnraum.",
        ),
        (
            "La fête du quartier est-elle le 14 juin ?",
            "La fête du quartier a lieu le 14 juin sur la place. Chacun apporte un plat.",
            "La fête du quartier est reportée au 21 juin, à cause des travaux. Chacun apporte un plat.",
        ),
    ],
)
async def test_a_day_that_was_moved_is_asked_for_by_its_former_date(question: str, old: str, new: str) -> None:
    passages = [passage("old", old, "2025-01-10", 0), passage("new", new, "2025-02-20", 0)]
    elsewhere = passage("elsewhere", "On 3 May the shed is painted, and on 4 May the jetty is swept.", "2025-03-01", 0)
    scores = await MATCHER.grade(question, [*passages, elsewhere])
    assert min(scores[:2]) > 0.6 > scores[2]
    best_first = sorted(
        (replace(each, score=score) for each, score in zip(passages, scores, strict=False)),
        key=lambda each: -(each.score or 0),
    )
    assert await order(question, *best_first) == ["new", "old<new"]
