"""Synthetic texts with the statistics of real ones: a Zipf vocabulary, recurring named entities, sentences with facts.

A passage is about one entity and its home, and names others from a pool that grows with the square root of the corpus.
So a few names are frequent and most are rare. `VERSION` changes with the texts; it is part of the key of cached stores.
"""

import bisect
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cragside.bootstrap import Container

VERSION = 2


def _split(words: str) -> list[str]:
    return words.split()


_ONSETS = _split("b br c cr d dr f g gr h j k l m n p pr r s st t th tr v w z")
_VOWELS = _split("a e i o u ea ou ai")
_CODAS = [*_split("l n r s t m nd rn st ck"), "", "", ""]
_KINDS = ["Institute", "Harbour", "Museum", "Railway", "Observatory", "Foundry", "Library", "Society", "Canal", "Mill"]
_VERBS = _split(
    "opened restored surveyed archived purchased designed measured described rebuilt funded closed catalogued "
    "inspected painted photographed relocated expanded repaired published tested"
)
_NOUNS = _split(
    "bridge archive engine garden ledger tunnel collection lantern map workshop turbine gallery harbour wall orchard "
    "furnace signal station reservoir cellar organ clock roof chapel pump telescope quarry mural tower staircase"
)
_ADJECTIVES = _split(
    "northern early wooden granite narrow public private abandoned historic mechanical coastal annual experimental "
    "provincial ornate shallow civic remote underground floating"
)
_PLAIN = _split(
    "the water level and the price of timber were written down every morning by the clerk on duty who also kept a "
    "list of visitors repairs deliveries and small accidents because the council wanted to know what was spent why "
    "it was spent and how long each part of the work would take before winter came again to the valley"
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of about 130 words, and a question that it answers."""

    text: str
    question: str


def passages(count: int, *, seed: int = 7) -> list[Passage]:
    """`count` passages; the same arguments give the same passages."""
    return list(itertools.islice(_Writer(count, seed).passages(), count))


# None of them is a Roman numeral.
_LETTERS = str.maketrans("0123456789", "bghjkpqrst")


def questions(count: int, wanted: int) -> list[str]:
    """Distinct questions that passages from all parts of a corpus of `count` answer."""
    written = passages(count)
    chosen = [written[n * 7919 % len(written)].question for n in range(wanted)]
    return [distinct(question, n) for n, question in enumerate(chosen)]


def distinct(question: str, n: int) -> str:
    """The question with a word that no other `n` has. A number would be one that the passages lack."""
    return f"{question[:-1]}, entry {str(n).translate(_LETTERS)}?"


_FACT = re.compile(r"\b(?:[A-Z][a-z]+|\d{4}|[a-z]+)\b")
_BEGINNINGS = frozenset({"For", "In"})


def states(passage: str, question: str) -> bool:
    """Return True if a passage has each name, year and noun that a question asks for."""
    asked = (word for word in _FACT.findall(question) if word not in _BEGINNINGS)
    return {word for word in asked if not word.islower() or word in _NOUNS} <= set(_FACT.findall(passage))


def documents(written: list[Passage], *, each: int) -> list[tuple[str, str]]:
    """The passages as (name, text), `each` of them in a document, separated by blank lines."""
    return [
        (f"record-{start // each:05d}.txt", "\n\n".join(passage.text for passage in written[start : start + each]))
        for start in range(0, len(written), each)
    ]


class _Writer:
    def __init__(self, count: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._entities = self._names(max(40, int(12 * count**0.5)))
        self._entity_weights = _zipf(len(self._entities), 0.8)
        self._words = [*_NOUNS, *_ADJECTIVES, *(self._invented() for _ in range(12_000))]
        self._word_weights = _zipf(len(self._words), 1.05)

    def passages(self) -> Iterator[Passage]:
        for number in itertools.count():
            subject = self._entities[number % len(self._entities)]
            sentences = [self._fact(subject)]
            sentences += [self._fact(self._entity()) if i % 3 == 1 else self._remark() for i in range(8)]
            fact = sentences[0]
            question = f"For whom was the {fact.adjective} {fact.noun} {fact.verb} by the {subject} in {fact.year}?"
            yield Passage(" ".join(sentence.text for sentence in sentences), question)

    def _fact(self, subject: str) -> "_Sentence":
        verb, noun, adjective = (self._random.choice(words) for words in (_VERBS, _NOUNS, _ADJECTIVES))
        year = self._random.randint(1750, 1995)
        tail = f"for {self._entity()}, together with {self._entity()}"
        return _Sentence(
            f"In {year} the {subject} {verb} the {adjective} {noun} {tail}, and kept the {self._word()} "
            f"and the {self._word()} of it.",
            verb,
            adjective,
            noun,
            year,
        )

    def _remark(self) -> "_Sentence":
        start = self._random.randrange(len(_PLAIN) - 8)
        words = _PLAIN[start : start + 8]
        words[2:2] = [self._word() for _ in range(2)]
        words.extend(self._word() for _ in range(3))
        return _Sentence(f"{' '.join(words).capitalize()}.")

    def _entity(self) -> str:
        return self._entities[self._drawn(self._entity_weights)]

    def _word(self) -> str:
        return self._words[self._drawn(self._word_weights)]

    def _drawn(self, cumulative: list[float]) -> int:
        return bisect.bisect(cumulative, self._random.random() * cumulative[-1])

    def _names(self, count: int) -> list[str]:
        names: dict[str, None] = {}
        while len(names) < count:
            names[f"{self._invented().capitalize()} {self._random.choice(_KINDS)}"] = None
        return list(names)

    def _invented(self) -> str:
        syllables = self._random.choice((2, 2, 3))
        pick = self._random.choice
        return "".join(pick(_ONSETS) + pick(_VOWELS) + (pick(_CODAS) if i else "") for i in range(syllables))


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    verb: str = ""
    adjective: str = ""
    noun: str = ""
    year: int = 0


def _zipf(count: int, exponent: float) -> list[float]:
    return list(itertools.accumulate(1 / rank**exponent for rank in range(1, count + 1)))


async def index(container: "Container", texts: Sequence[tuple[str, str]]) -> None:
    """Index (name, text) pairs as the service does: through the queue, with a worker in this process."""
    from cragside.domain.document import SourceText

    for name, text in texts:
        await container.intake.text(SourceText(name, text), workspace=container.settings.workspace)
    outcomes = await container.worker().run(until_idle=True, sweep=False)
    if set(outcomes) != {"done"}:
        raise SystemExit(f"Some documents were not indexed: {dict(outcomes)}")
