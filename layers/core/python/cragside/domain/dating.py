"""Dates passages, and puts the later of two first that answer equally well.

An entry of a log has the date that it begins with. For other passages these are tried in turn, and the first known date
counts: front matter or the client's metadata, the first lines of the document, its name, the properties of its file. A
document may claim any date. One in the future or before 1900 counts as unknown.

A later document may change what an earlier one says, as a mail changes a contract, or a price list that of the year
before. If the question names the earlier time, the passage of that time comes first. Nothing is dropped.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache

from cragside.domain.dates import MONTHS, Period, dates_in, time_in, times_in
from cragside.domain.evidence import Document
from cragside.domain.indexing import DocumentRecord, Passage
from cragside.domain.verdict import document_of_evidence

# The characters of a document in which it says of when it is.
BEGINNING = 500
_LONGEST_NAME = 300
_LONGEST_LOG = 8_000
_PROPERTIES = (
    *("date", "datum", "stand", "updated", "lastmod", "modified", "published", "publishdate", "published_at"),
    *("valid_from", "effective", "created", "created_at"),
)
# What a table says in its first rows is about these rows, and code names dates of other things.
_TABLES = frozenset({"csv", "tsv", "xlsx", "xlsm", "xls", "ods"})
# The time that python-docx's template has.
_TEMPLATE = "2013-12-23T23:15:00"
# A line or a sentence that begins so says of when the document is.
_SAYS = re.compile(
    r"(?:^|[.,;:(|–—-])[ \t#*_>|]{0,8}(?:the )?"
    r"(?:(?:(?:invoice|issue|letter|report|offer|order|publication) )?date"
    r"|(?!geburts|liefer|ablauf|verfall|end)[^\W\d_]{0,20}datum"
    r"|stand|as (?:of|at)|dated|issued|published"
    r"|(?:last )?(?:updated|modified|changed|revised)|version|valid|effective"
    r"|in force|saved|printed|signed|agreed|minutes|meeting|report|inspection|protokoll|niederschrift|sitzung|bericht"
    r"|prüfung|prüftag|gültig|gilt|in kraft|ausgabe|erstellt|veröffentlicht|aktualisiert|geändert|gespeichert|gedruckt"
    r"|unterzeichnet|fait|établi|publié|mise? à jour|modifié|enregistré|imprimé|signé|procès-verbal|compte[- ]rendu"
    r"|réunion|séance|rapport|en vigueur|valable|applicable|tarifs?|édition)\b([^\n;|]{0,60})$",
    re.IGNORECASE,
)
# "Norderholm, 18 April 2024", "Friday, 18 April 2024", "## 2024-04-18".
_DATELINE = re.compile(
    r"(?:^|[.;] )[ \t#*_>|-]{0,8}(?:[^\W\d_][^\n\d.;]{0,40}, ?)?(?:(?:the|den|am|le) )?$", re.IGNORECASE
)
_ENDS = re.compile(r"[ \t*_]{0,4}(?:[.,;:)|]|$)", re.MULTILINE)
# What stands before a date in its line says of what it is.
_LONGEST_BEFORE = 120
# The date is then that of another thing.
_OTHER = re.compile(
    r"\b(?:until|till|to|before|by|next|due|bis|vor|nächste[nrs]?|fällig|jusqu|avant|prochaine?|of birth)\b",
    re.IGNORECASE,
)
# Of a log alone lines tell when they were written. Those of a timetable tell of what is to come.
_LOG = re.compile(
    r"log|diary|journal|notes|chronicle|history|buch|chronik|notizen|verlauf|carnet|historique|chronique", re.IGNORECASE
)
_LINE_START = re.compile(r"^[ \t#*_>\[(-]{0,8}(?:[^\W\d_]{2,10}[.,]{0,2} )?(?=[0-9])", re.MULTILINE)


def date_of(record: DocumentRecord, passage: Passage, today: date) -> str | None:
    """Return the date of a passage or of its document, as exactly as it is known: 2025-03-11, 2025-03 or 2025."""
    beginning = record.beginning or (passage.text[:BEGINNING] if passage.index == 0 else "")
    is_prose = record.file_type not in _TABLES and record.doc_type != "code"
    entry = _of_entry(record, passage, beginning) if is_prose else None
    if entry is not None and entry.is_plausible(today):
        return str(entry)
    claims = _claims(
        _properties(record),
        str(record.tier1.get("date", ""))[:_LONGEST_NAME],
        beginning if is_prose else "",
        str(record.tier1.get("publishDate", ""))[:_LONGEST_NAME],
        _file_name(record),
        record.title[:_LONGEST_NAME],
        str(record.tier1.get("createdDate", ""))[:_LONGEST_NAME].removeprefix(_TEMPLATE),
    )
    known = next((claim for claim in claims if claim.is_plausible(today)), None)
    return None if known is None else str(known)


def _file_name(record: DocumentRecord) -> str:
    return record.name.rpartition("/")[2][:_LONGEST_NAME]


def _properties(record: DocumentRecord) -> tuple[str, ...]:
    """Give the dates in front matter or from the client, the most telling first."""
    stated = {name.lower(): value for name, value in record.metadata.items() if isinstance(value, str | int)}
    return tuple(str(stated[name])[:_LONGEST_NAME] for name in _PROPERTIES if name in stated) if stated else ()


@lru_cache(maxsize=1024)
def _claims(
    properties: tuple[str, ...], sent: str, beginning: str, published: str, name: str, title: str, created: str
) -> tuple[Period, ...]:
    """Return all dates that a document claims, the most trusted first."""
    said = (*map(time_in, properties), time_in(sent), *_said(beginning.lower()), time_in(published))
    named = (_of_name(text.lower()) for text in (name, title))
    return tuple(time for time in (*said, *named, time_in(created)) if time is not None)


def _said(beginning: str) -> Iterator[Period]:
    """Read the date in the first lines: one behind a word for dates, or beside a place, or else the title's."""
    for start, end, (time,) in times_in(beginning):
        line = beginning.rfind("\n", 0, start) + 1
        before = beginning[max(line, start - _LONGEST_BEFORE) : start]
        says = _SAYS.search(before)
        is_dateline = not time.is_year and _DATELINE.search(before) and _ENDS.match(beginning, end)
        if is_dateline or (says and not _OTHER.search(says[1])):
            yield time
    title = next((_of_name(line) for line in beginning.split("\n") if line.strip()), None)
    if title is not None:
        yield title


def _of_name(text: str) -> Period | None:
    """Return the most exact of the dates in a title or a name; of equally exact ones, the last."""
    found = [time for start, _, (time,) in times_in(text) if not _OTHER.search(text[:start])]
    return max(found, key=lambda time: (time.first - time.last, time), default=None)


def _of_entry(record: DocumentRecord, passage: Passage, beginning: str) -> Period | None:
    """Return the date of an entry: that of its heading, or in a log the last date at the beginning of a line."""
    heading = passage.section.rpartition(" > ")[2][:_LONGEST_NAME]
    first = next(iter(times_in(heading.lower())), None) if heading else None
    if first is not None and first.start == 0 and not first.periods[0].is_year:
        return first.periods[0]
    if not _is_log(record.title[:_LONGEST_NAME], _file_name(record)):
        return None
    entries = set(_line_dates(passage.text[:_LONGEST_LOG]))
    if len(entries | set(_line_dates(beginning))) < 2:
        return None
    return max(entries, default=None)


@lru_cache(maxsize=1024)
def _is_log(title: str, name: str) -> bool:
    return _LOG.search(f"{title} {name}") is not None


def _line_dates(text: str) -> Iterator[Period]:
    text = text.lower()
    starts = {line.end() for line in _LINE_START.finditer(text)}
    for start, _, (time,) in times_in(text) if starts else ():
        if start in starts and time.is_day:
            yield time


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
    """Return the passages, best first, but a later one before an earlier one of another document that answers equally.

    `found` has, for each passage, the words of the question that stand near each other in it. Where a later passage was
    put before an earlier one, the metadata of the earlier has the later one's id as `earlierThan`.
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
    """Return the month or day of a document that the question names, as in "the March minutes"."""
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
