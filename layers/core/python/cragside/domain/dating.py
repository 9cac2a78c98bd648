"""The date of what a passage quotes, worked out from what a store holds of its document.

An entry of a log has the date that it begins with. Otherwise these are asked in turn, and the first one that is known
counts: front matter or the client's metadata, what the document says of itself in its first lines, its name, the
properties of its file. A document may claim any date. One in the future or before 1900 counts as unknown.
"""

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache

from cragside.domain.date_reading import time_in, times_in
from cragside.domain.indexing import DocumentRecord, Passage
from cragside.domain.periods import Period

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
    """The date of what a passage quotes, as exactly as it is known: 2025-03-11, 2025-03 or 2025."""
    beginning = record.beginning or (passage.text[:BEGINNING] if passage.index == 0 else "")
    told = record.file_type not in _TABLES and record.doc_type != "code"
    entry = _of_entry(record, passage, beginning) if told else None
    if entry is not None and entry.is_plausible(today):
        return str(entry)
    claims = _claims(
        _properties(record),
        str(record.tier1.get("date", ""))[:_LONGEST_NAME],
        beginning if told else "",
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
    told = {name.lower(): value for name, value in record.metadata.items() if isinstance(value, str | int)}
    return tuple(str(told[name])[:_LONGEST_NAME] for name in _PROPERTIES if name in told) if told else ()


@lru_cache(maxsize=1024)
def _claims(
    properties: tuple[str, ...], sent: str, beginning: str, published: str, name: str, title: str, created: str
) -> tuple[Period, ...]:
    """All dates that a document claims, the most trusted first."""
    said = (*map(time_in, properties), time_in(sent), *_said(beginning.lower()), time_in(published))
    named = (_of_name(text.lower()) for text in (name, title))
    return tuple(time for time in (*said, *named, time_in(created)) if time is not None)


def _said(beginning: str) -> Iterator[Period]:
    """Read the dates of the first lines: one with a word that says so, one beside a place, or else the title's."""
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
    """The most exact of the dates in a title or a name, and of several the last one."""
    found = [time for start, _, (time,) in times_in(text) if not _OTHER.search(text[:start])]
    return max(found, key=lambda time: (time.first - time.last, time), default=None)


def _of_entry(record: DocumentRecord, passage: Passage, beginning: str) -> Period | None:
    """The date of an entry: that of its heading, or in a log the last of those that lines of the passage begin with."""
    heading = passage.section.rpartition(" > ")[2][:_LONGEST_NAME]
    first = next(iter(times_in(heading.lower())), None)
    if first is not None and first.start == 0 and not first.periods[0].is_year:
        return first.periods[0]
    if not _LOG.search(f"{record.title[:_LONGEST_NAME]} {_file_name(record)}"):
        return None
    entries = set(_line_dates(passage.text[:_LONGEST_LOG]))
    if len(entries | set(_line_dates(beginning))) < 2:
        return None
    return max(entries, default=None)


def _line_dates(text: str) -> Iterator[Period]:
    text = text.lower()
    starts = {line.end() for line in _LINE_START.finditer(text)}
    for start, _, (time,) in times_in(text) if starts else ():
        if start in starts and time.is_day:
            yield time
