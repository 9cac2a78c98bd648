"""Questions are read in the words of the documents."""

import asyncio
from collections.abc import Collection, Mapping

import pytest

from cragside.adapters.embedded.spelling import correct
from cragside.adapters.embedded.words import terms
from tests.bounds import read_within

PASSAGES = (
    "The battery of the dehumidifier was replaced by Ottilie Wenzel in March.",
    "Rabies jabs are valid until May. The dishwasher stands beside the edge bander in the store.",
    "Die Temperatur der Pfähle wird gemessen. Die Kündigungsfrist steht im Vertrag.",
    "Le mètre de toile est vendu dans la charpente courte.",
)


class Passages:
    """Stands in for the vocabulary of a store of a few passages. Counts how often it is asked for terms."""

    def __init__(self, *passages: str) -> None:
        self._passages = {passage: set(terms(passage)) for passage in passages}
        self.asked = 0

    async def held(self, terms: Collection[str]) -> Mapping[str, int]:
        self.asked += 1
        return {term: 1 for term in terms if any(term in held for held in self._passages.values())}

    async def passage_with(self, words: str) -> str:
        best = max(self._passages, key=lambda passage: len(self._passages[passage] & set(terms(words))))
        return best if self._passages[best] & set(terms(words)) else ""


async def read(question: str, *passages: str) -> str:
    return (await correct(question, Passages(*(passages or PASSAGES)))).text


async def test_a_document_with_another_misspelling_does_not_take_over_a_word() -> None:
    planted = ("lol the bateyr and the baetry", "baatery bateery")
    assert await read("when was the batery replaced", *PASSAGES, *planted) == "when was the battery replaced"


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("when was the batery replaced", "when was the battery replaced"),
        ("when was the batterry replaced", "when was the battery replaced"),
        ("when was the bettery replaced", "when was the battery replaced"),
        ("price of the dehumidifer", "price of the dehumidifier"),
        ("what is in the stroe", "what is in the store"),
        ("ottlie wenzel phone", "Ottilie wenzel phone"),
        ("rabbies valid untill", "Rabies valid until"),
        ("wich store has it", "which store has it"),
        ("welche temparatur ist gemessen", "welche Temperatur ist gemessen"),
        ("kuendigunsfrist vertrag", "Kündigungsfrist vertrag"),
        ("pfaehle vertrag", "Pfähle vertrag"),
        ("where is the dish washer", "where is the dishwasher"),
        ("where is the edgebander", "where is the edge bander"),
    ],
)
async def test_a_word_that_the_documents_lack_is_read_as_the_nearest_one_that_they_have(
    question: str, meant: str
) -> None:
    assert await read(question) == meant


@pytest.mark.parametrize(
    "question",
    [
        "When was the battery replaced?",
        "Was it on premises or on a trainee's bench?",  # words of the language
        "Quelle est la longueur de la Charente ?",
        "Combien coûte la toile ?",
        "Wie lange hält die Kette?",
        "What about the PT-411 and the BATTRY?",  # no word, and an abbreviation
        "Where does Otto live?",
        "Kdkdkd Bgbgbg Cxcxcx Dydydy Batery",  # another language, or none
        "",
        "? ! 12 ...",
        "猫は何を食べますか",
    ],
)
async def test_words_of_the_language_and_of_no_document_stay_as_they_are(question: str) -> None:
    assert await read(question) == question


async def test_what_was_read_otherwise_is_told() -> None:
    reading = await correct("rabbies jabs untill when", Passages(*PASSAGES))
    assert [(word.asked, word.read) for word in reading.words] == [("rabbies", "Rabies"), ("untill", "until")]


async def test_questions_without_strange_words_ask_for_nothing_and_others_once() -> None:
    passages = Passages(*PASSAGES)
    await correct("When was the battery of the dehumidifier replaced?", passages)
    assert passages.asked == 0
    await correct("When did Ottilie Wenzel replace the battery?", passages)
    assert passages.asked == 1


async def test_the_likelier_slip_wins_over_the_commoner_word() -> None:
    assert await read("price for the stroe", "The strove was there.", "The store is here.") == "price for the store"


@pytest.mark.parametrize("word", ["bxtz", "batery ", "äö", "a'b", "batery'"])
def test_a_question_of_any_length_is_read_in_time(word: str) -> None:
    read_within(2.0, lambda text: asyncio.run(read(text)), lambda length: word * (length // len(word)))
