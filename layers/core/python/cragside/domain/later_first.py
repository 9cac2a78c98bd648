"""Puts the later one of two passages first that answer equally well, and marks the earlier one.

A later document may change what an earlier one says: a mail the contract, a price list that of the year before. Where
the question names the earlier time, the passage of that time comes first. Nothing is dropped.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from cragside.domain.date_reading import dates_in, time_in, times_in
from cragside.domain.document import Document
from cragside.domain.named_dates import MONTHS
from cragside.domain.periods import Period
from cragside.domain.variety import document_of_evidence

# Passages whose scores differ by more do not answer equally.
_NEAR = 0.15
# Above the threshold, scores tell less apart.
_NEAR_ABOVE = 0.25
# The share of the question's words in the earlier passage that the later one has too.
_SHARED = 0.6
_LONGEST_QUESTION = 1_000
# So much of a question before a month may name a document.
_BEFORE_A_MONTH = 40
# A question with one of these asks for what was before.
_EARLIER = re.compile(
    r"\b(?:original(?:ly)?|initial(?:ly)?|previous(?:ly)?|former(?:ly)?|used to|back then|at first|superseded|outdated"
    r"|the old|ursprünglich\w{0,3}|anfänglich\w{0,3}|anfangs|damals|früher\w{0,2}|vorherig\w{0,2}|zunächst"
    r"|(?:der|die|das|dem|den) alten?|initial\w{0,6}|à l['’]origine|auparavant|autrefois|précédent\w{0,4}"
    r"|l['’]ancien\w{0,2})\b"
)
_BEFORE = re.compile(r"\b(?:before|until|prior to|vor|bis|avant|jusqu['’]en|jusqu['’]à)\s{1,3}$")
_SINCE = re.compile(r"\b(?:since|after|ab|seit|nach|depuis|dès|après|à partir d[eu])\s{1,3}$")
# A month without its year is that of a document beside a word for one: the March minutes, the list of 3 May.
_DOCUMENT = (
    r"(?:minutes|meeting|list|mail|e-mail|letter|contract|plan|notes?|report|version|edition|ro(?:ster|ta)|protokolls?"
    r"|sitzung|liste|brief|fassung|bericht|ausgabe|compte[- ]rendu|réunion|lettre|courriel|rapport)"
)
_BEHIND_DOCUMENT = re.compile(rf"\b{_DOCUMENT}\s{{1,3}}(?:(?:of|from|vom|von|du|de)\s{{1,3}})?(?:the )?$")
_AHEAD_OF_DOCUMENT = re.compile(rf"(?:['’]s)?[\s-]{{1,3}}{_DOCUMENT}\b")


def are_dated_apart(documents: Sequence[Document]) -> bool:
    """Tell if the passages have at least two different dates."""
    return len({document.metadata.get("date") for document in documents} - {None}) > 1


def later_first(
    question: str, documents: Sequence[Document], found: Sequence[Iterable[str]], threshold: float
) -> list[Document]:
    """The passages, best first, with a later one before an earlier one of another document that answers equally.

    `found` has the words of the question that stand near each other in each. The metadata of each earlier one names, as
    `earlierThan`, the id of a later one that stands before it.
    """
    asked = _Asked(question[:_LONGEST_QUESTION].lower(), threshold)
    ordered: list[_Dated] = []
    for passage in map(_Dated, documents, found):
        place = len(ordered)
        for at in reversed(range(len(ordered))):
            if asked.prefers(passage, ordered[at]):
                place = at
            elif asked.stays_behind(passage, ordered[at]):
                break
        ordered.insert(place, passage)
    return [_marked(passage, ordered[:at], asked) for at, passage in enumerate(ordered)]


class _Dated:
    """A passage with its date and those of the question's words that it has."""

    def __init__(self, document: Document, words: Iterable[str]) -> None:
        metadata = document.metadata
        self.document = document
        self.words = frozenset(words)
        self.score = document.score or 0.0
        self.origin = document_of_evidence(document)
        self.date = time_in(str(metadata.get("date", "")))
        self.named = f"{document.title} {metadata.get('filename', '')}"

    def is_after(self, other: "_Dated") -> bool:
        """Tell if it is surely later than another one."""
        return self.date is not None and other.date is not None and self.date.is_after(other.date)


class _Asked:
    """The time that a question in lower case names."""

    def __init__(self, question: str, threshold: float) -> None:
        self._threshold = threshold
        named = next(iter(times_in(question)), None)
        self._when = named.periods[0] if named else None
        before = question[: named.start] if named else ""
        self._before, self._since = bool(_BEFORE.search(before)), bool(_SINCE.search(before))
        self._document = None if self._when else _time_of_document(question)
        self._earlier = bool(_EARLIER.search(question))

    def near(self, one: _Dated, other: _Dated) -> bool:
        """Tell if two passages have nearly the same score."""
        weak = min(one.score, other.score) <= self._threshold
        return abs(one.score - other.score) <= (_NEAR if weak else _NEAR_ABOVE)

    def equal(self, one: _Dated, other: _Dated) -> bool:
        """Tell if two passages of different documents and times answer equally."""
        if one.origin == other.origin or not (one.is_after(other) or other.is_after(one)):
            return False
        return self.near(one, other) and self.alike(one, other)

    def alike(self, one: _Dated, other: _Dated) -> bool:
        """Tell if two passages have the same words of the question."""
        if any(map(_has_digit, one.words - other.words)) and any(map(_has_digit, other.words - one.words)):
            return False  # the question asks for both: the A-12 and the A-14, 2023 and 2024
        if not MONTHS.keys().isdisjoint(one.words ^ other.words):
            return False  # one is of the month that the question names
        shared = len(one.words & other.words)
        weak = min(one.score, other.score) <= self._threshold
        return shared >= max(_SHARED * max(len(one.words), len(other.words)), 2 if weak else 1)

    def stays_behind(self, one: _Dated, other: _Dated) -> bool:
        """Tell if no third passage helps it ahead: the other one answers better, or is not known to be earlier."""
        return self.alike(one, other) and not (one.is_after(other) and self.near(one, other))

    def prefers(self, one: _Dated, other: _Dated) -> bool:
        """Tell if a passage comes before one that has the better score."""
        if not self.equal(one, other):
            return False
        fits, others = self._fits(one), self._fits(other)
        if fits != others:
            return fits
        return other.is_after(one) if self._earlier else one.is_after(other)

    def _fits(self, passage: _Dated) -> bool:
        """Tell if a passage is of the time that the question names, or was not written after it."""
        when, at = self._when, passage.date
        if at is None or (when is None and self._document is None):
            return True
        if when is None:
            return self._document is not None and self._document.meets(at)
        if self._before:
            return when.is_after(at)
        if self._since:
            return not when.is_after(at)
        return not at.is_after(when) or any(time.meets(when) for _, _, (time,) in times_in(passage.named.lower()))


def _time_of_document(question: str) -> Period | None:
    """The month, or its day, of a document that the question names: the March minutes."""
    for start, end, periods in dates_in(question, every_name=True):
        behind = _BEHIND_DOCUMENT.search(question, max(0, start - _BEFORE_A_MONTH), start)
        if behind or _AHEAD_OF_DOCUMENT.match(question, end):
            return periods[0]
    return None


def _marked(passage: _Dated, before: Iterable[_Dated], asked: _Asked) -> Document:
    later = next((other for other in before if other.is_after(passage) and asked.equal(passage, other)), None)
    if later is None:
        return passage.document
    metadata = {**passage.document.metadata, "earlierThan": later.document.id}
    return replace(passage.document, metadata=metadata)


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
