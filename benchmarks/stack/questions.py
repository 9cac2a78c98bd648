"""Documents, pages that only the web has, and questions about both, for `benchmarks.stack`."""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks import corpus
from benchmarks.corpus import Passage

PASSAGES_A_DOCUMENT = 5
_LOCAL_SEED, _WEB_SEED, _LATER_SEED = 7, 11, 13
_FOUND = 3
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=\.) ")
_ANSWER = re.compile(r" for (.+?), together with ")


class Knowledge:
    """`count` passages to index, as many on the web, and `later` ones to index while questions are asked."""

    def __init__(self, count: int, later: int) -> None:
        self.local = corpus.passages(count, seed=_LOCAL_SEED)
        self.web = corpus.passages(count, seed=_WEB_SEED)
        self.documents = corpus.documents(self.local, each=PASSAGES_A_DOCUMENT)
        self.later = [
            (f"later-{name}", text) for name, text in corpus.documents(corpus.passages(later, seed=_LATER_SEED), each=1)
        ]
        self._pages = [(_words(passage.text), _page(number, passage)) for number, passage in enumerate(self.web)]

    def find(self, query: str) -> list[dict[str, Any]]:
        """The pages that share most words with a query."""
        asked = _words(query)
        best = sorted(self._pages, key=lambda page: len(asked & page[0]), reverse=True)
        return [page for _, page in best[:_FOUND]]


def turns(passages: Sequence[Passage]) -> Iterator[Passage]:
    """The passages in turn, from all parts of the corpus, for ever."""
    return (passages[n * 7919 % len(passages)] for n in itertools.count())


def answer_of(passage: Passage) -> str:
    """The name that answers the question of a passage."""
    found = _ANSWER.search(passage.text)
    if found is None:
        raise ValueError("The passage does not answer its question.")
    return found[1]


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _page(number: int, passage: Passage) -> dict[str, Any]:
    first, second, *_ = _SENTENCE.split(passage.text)
    return {"title": "Records", "url": f"https://records.example/{number}", "content": f"{first} {second}"}
