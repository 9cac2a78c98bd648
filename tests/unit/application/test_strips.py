import pytest
from hypothesis import given
from hypothesis import strategies as st

from cragside.application.grading import best_strips, compressed, strips_of
from cragside.domain.evidence import Document
from cragside.domain.reading import Reading
from tests.fakes import WordGrader

KELP = "Kelp grows fast in cold water along rocky coasts, where it is anchored to the ground by holdfasts in storms."
RAIN = "On the second day of the conference it rained for hours and nobody went out to look at the sea at all."
OTTER = "Otters eat the urchins that graze on kelp, so that kelp forests grow back wherever otters have come back to."


def document(content: str, identifier: str = "d") -> Document:
    return Document(identifier, content, "local", title="Kelp and otters", score=0.9, metadata={"page": 3})


async def test_irrelevant_strips_are_removed_and_leave_a_visible_gap() -> None:
    [found] = await compressed(Reading("kelp otters"), [document(f"{KELP} {RAIN} {OTTER}")], WordGrader())
    assert found.content == f"{KELP} … {OTTER}"
    assert (found.id, found.title, found.score, found.metadata) == ("d", "Kelp and otters", 0.9, {"page": 3})


async def test_neighbouring_strips_stay_joined_without_a_gap() -> None:
    [found] = await compressed(Reading("kelp"), [document(f"{RAIN} {KELP} {OTTER}")], WordGrader())
    assert found.content == f"{KELP}\n{OTTER}"


async def test_the_best_strip_always_stays() -> None:
    [found] = await compressed(Reading("zebra"), [document(f"{KELP} {RAIN}")], WordGrader())
    assert found.content


async def test_all_documents_are_graded_in_one_call_without_their_titles() -> None:
    calls = []

    class Noting(WordGrader):
        async def grade(self, query, documents):
            calls.append(documents)
            return await super().grade(query, documents)

    found = await compressed(
        Reading("kelp"), [document(f"{RAIN} {KELP}", "a"), document(f"{OTTER} {RAIN}", "b")], Noting()
    )
    assert [d.content for d in found] == [KELP, OTTER]
    assert [len(call) for call in calls] == [4]
    assert {d.title for d in calls[0]} == {""}


async def test_a_passage_of_one_strip_is_returned_without_grading() -> None:
    class Never:
        async def grade(self, query, documents):
            raise AssertionError("nothing to grade")

    short = [document("Kelp  grows.\nOtters sleep.")]
    assert await compressed(Reading("kelp"), short, Never()) == short
    assert await compressed(Reading("kelp"), [], Never()) == []


@given(st.text(alphabet="ab .!?\n-#。", max_size=400))
def test_strips_hold_every_word_in_its_order(text: str) -> None:
    assert " ".join(strips_of(text)).split() == text.split()
    assert all(strips_of(text))


@pytest.mark.parametrize("text", ["Short one. " * 5000, "word " * 50_000, "a.\n\n" * 30_000, "。" * 5000])
def test_the_number_of_strips_is_bounded(text: str) -> None:
    assert len(strips_of(text)) <= 48


async def test_the_best_strips_have_room_in_so_many_characters_and_keep_their_order():
    whole = document(f"{RAIN} {KELP} {RAIN} {OTTER} {RAIN}")
    found = await best_strips("kelp otters", whole, WordGrader(), characters=len(KELP) + len(OTTER) + 10)
    assert KELP in found.content
    assert OTTER in found.content
    assert RAIN not in found.content
    assert found.content.index(KELP) < found.content.index(OTTER)
    assert (await best_strips("kelp", whole, WordGrader(), characters=10_000)) == whole


async def test_a_strip_that_is_too_long_is_cut():
    found = await best_strips("kelp", document("kelp " * 500), WordGrader(), characters=100)
    assert found.content == ("kelp " * 500)[:100]
