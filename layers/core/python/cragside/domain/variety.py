"""Keeps one document from taking all places among the evidence."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from cragside.domain.document import Document

T = TypeVar("T")

_SHARE_OF_ONE = 0.6


def varied(ranked: Sequence[T], most: int, origin: Callable[[T], str]) -> list[T]:
    """The first `most`, in their order. One `origin` has at most three fifths of the places while others want them.

    So a document whose title claims to be about everything does not keep all others out.
    """
    share = math.ceil(most * _SHARE_OF_ONE)
    taken = Counter[str]()
    chosen: list[int] = []
    beyond: list[int] = []
    for number, item in enumerate(ranked):
        taken[origin(item)] += 1
        (chosen if taken[origin(item)] <= share else beyond).append(number)
    return [ranked[number] for number in sorted([*chosen, *beyond][:most])]


def document_of_evidence(passage: Document) -> str:
    """The document of a passage; a page of the web is one by itself."""
    return str(passage.metadata.get("documentId") or passage.id)
