"""The generated swaps and the written notes of `evals/` are what they claim to be, and the notes come out right."""

import random
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "evals"))

import changes
import numpy as np
import several
from clapnq_data import Passage, Question
from halves import HALVES
from languages import LANGUAGES, read_entries
from ranking import Ranks, fitting, kept
from short_notes import judge, read_notes
from stores import EmptyWeb
from swaps import another_number, names_of, swaps_of

from cragside.adapters.embedded.embedder import WordLlamaEmbedder
from cragside.adapters.embedded.grader import EmbeddedGrader
from cragside.adapters.embedded.words import words
from cragside.domain.verdict import DEFAULT_THRESHOLD

TEXT = (
    "The bridge at Elgol was opened by Brodmann on 12 May 1903 and carried 75 carts in its first week. The "
    "mason Ferrers repaired it in 1911."
)
OTHER = "In the harbour of Tromsø the captain Halvorsen keeps a boat, which the bridge at Skene has never seen."
BRIDGE = Question("1", "who opened the bridge at elgol", Passage("a", "Elgol bridge", TEXT), answerable=True)


def test_a_swap_replaces_what_the_passage_has_with_what_it_lacks() -> None:
    names = names_of([BRIDGE.passage, Passage("b", "", OTHER)])
    found = list(swaps_of(BRIDGE, names, random.Random(1)))
    assert {swap.kind for swap in found} == {"number", "year", "date", "code", "name", "letter"}
    for swap in found:
        passage = set(words(f"{BRIDGE.passage.title} {swap.text}"))
        strange = set(words(swap.swapped)) - set(words(swap.original))
        assert strange
        assert strange.isdisjoint(passage)
        assert set(words(swap.original)) - set(words(swap.swapped)) <= passage


def test_names_have_a_capital_inside_a_sentence_and_are_nowhere_small() -> None:
    assert names_of([BRIDGE.passage, Passage("b", "", OTHER)]) == ["brodmann", "elgol", "ferrers", "halvorsen", "skene"]


def test_another_number_differs_in_one_digit() -> None:
    other = another_number("May 12", TEXT, random.Random(2))
    assert other is not None
    assert re.fullmatch("May 1[13-9]", other)


def test_written_notes_stay_local_and_echoes_and_other_questions_leave() -> None:
    notes = read_notes()
    local, *rest = judge(notes, EmbeddedGrader(WordLlamaEmbedder())).values()
    assert len(local) >= 60
    assert sum(local) >= 0.95 * len(local)
    for leaves in rest:
        assert sum(leaves) >= 0.95 * len(leaves)


def test_the_fitting_cosine_is_the_largest_step_that_keeps_nine_in_ten() -> None:
    cosines = np.full((10, 2), 0.1, np.float32)
    cosines[:, 0] = [0.31, 0.42, *[0.52] * 8]
    own = [0] * 10
    assert fitting(cosines, own) == 0.4
    flags, others = kept(cosines, own, 0.4)
    assert (sum(flags), others) == (9, 0.0)
    assert kept(cosines, own, 0.1)[1] == 1.0


def test_a_document_that_is_not_found_is_in_no_place() -> None:
    assert Ranks([0, 2, None], 1.0).within(1) == [True, False, False]
    assert Ranks([0, 2, None], 1.0).within(3) == [True, True, False]


@pytest.mark.parametrize("language", LANGUAGES)
def test_german_and_french_passages_pass_for_their_questions_and_no_others(language: str) -> None:
    entries = [entry for entry in read_entries() if (entry.language, entry.half) == (language, HALVES[0])]
    grader = EmbeddedGrader(WordLlamaEmbedder())
    passages = [(entry.passage.title, entry.passage.text) for entry in entries]
    own, others = [], []
    for number, entry in enumerate(entries):
        for question in entry.questions:
            scores = grader.scores(question, passages)
            own.append(scores.pop(number) > DEFAULT_THRESHOLD)
            others.append(max(scores) <= DEFAULT_THRESHOLD)
    assert sum(own) >= 0.8 * len(own)
    assert sum(others) >= 0.95 * len(others)


def test_the_web_of_the_evaluations_is_a_whole_search_service() -> None:
    assert EmptyWeb()


@pytest.mark.parametrize("half", HALVES)
def test_questions_about_several_things_have_an_answer_in_each_document_of_their_key(half: str) -> None:
    folder = several.FOLDER / half / "documents"
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir()}
    questions = several.read(half)
    assert len(questions) == 20
    assert {question.language for question in questions} == {"en", "de", "fr"}
    for question in questions:
        assert len(question.answers) + len(question.absent) > 1
        assert all(answer in texts[name] for name, answer in question.answers.items())
        assert not any(thing.lower() in text.lower() for thing in question.absent for text in texts.values())


def test_the_halves_of_questions_about_several_things_share_nothing() -> None:
    documents = [{file.name for file in (several.FOLDER / half / "documents").iterdir()} for half in HALVES]
    questions = [{question.question for question in several.read(half)} for half in HALVES]
    assert not documents[0] & documents[1]
    assert not questions[0] & questions[1]


def test_each_half_of_the_changes_has_both_answers_and_five_questions_of_the_earlier_time() -> None:
    halves = [changes.read(half) for half in HALVES]
    assert [len(pairs) for pairs in halves] == [20, 20]
    assert [sum(pair.names_earlier for pair in pairs) for pairs in halves] == [5, 5]
    every = [pair for pairs in halves for pair in pairs]
    assert {pair.language for pair in every} == {"en", "de", "fr"}
    assert len({file.name for pair in every for file in (pair.earlier, pair.later)}) == 80
    for pair in every:
        assert pair.old in pair.earlier.text
        assert pair.new in pair.later.text
        assert pair.new not in pair.earlier.text


async def test_the_later_of_two_documents_comes_first_through_the_whole_pipeline() -> None:
    pairs = [pair for pair in changes.read("development") if pair.kind in ("plan and mail", "price list", "roster")]
    asked = await changes.ask_all(pairs)
    assert {each.pair.names_earlier for each in asked} == {True, False}
    assert all(each.first for each in asked)
    assert all(each.both and each.dated and each.marked for each in asked if not each.pair.names_earlier)
