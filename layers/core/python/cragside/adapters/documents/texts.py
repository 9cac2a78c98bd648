"""Reads texts, Markdown and source code, tells what kind of document a text is, and annotates it without a model."""

import mimetypes
import re
from dataclasses import replace
from typing import Any

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.emails import mail_facts
from cragside.adapters.documents.exports import as_spoken, chat_facts
from cragside.adapters.documents.languages import language_of, outline
from cragside.adapters.documents.markdown_syntax import resolved, sections, seen, title_of, without_tags
from cragside.adapters.documents.reading import FileOrigin, Reading, Unreadable, present
from cragside.adapters.documents.titles import first_line_title, noted
from cragside.domain.document import DocType

_LOOKED_AT = 6000
_START = r"^[#>*\-+ \t_]{0,12}+"


def _field(names: str) -> re.Pattern[str]:
    return re.compile(rf"(?im){_START}(?:{names})[*_ \t]{{0,4}}+:[*_ \t]{{0,4}}+(\S.{{0,500}})$")


_PARTICIPANTS = _field(r"attendees|participants|present|teilnehmer(?:[:*_]?innen)?|anwesende?")
_DATE = _field("date|when|datum|wann")
_DURATION = _field("duration|length|dauer")
_PLATFORM = _field("platform|location|where|ort")
_TITLE = re.compile(
    rf"(?im){_START}\S?[^\n]{{0,80}}?\b(?:minutes|meeting|stand-?up|retrospective|protokoll|besprechung)\b"
)
_LIST = re.compile(
    rf"(?im){_START}(?:attendees|participants|teilnehmer(?:[:*_]?innen)?)[*_: \t]{{0,6}}+\n"
    r"\s{0,3}((?:[ \t]{0,8}+[-*+] [^\n]{1,120}+\n?){1,60}+)"
)
_PARTS = re.compile(
    rf"(?im){_START}(?:agenda|tagesordnung|action items|decisions|beschlüsse|next steps|aufgaben)"
    r"[*_ \t]{0,4}+:?[*_ \t]{0,4}+$"
)
_KNOWN_PLATFORM = re.compile(r"(?i)\b(zoom|microsoft teams|ms teams|google meet|webex|jitsi|skype|slack huddle)\b")


def meeting_facts(text: str) -> tuple[bool, dict[str, Any]]:
    """Tell if a text is the notes of a meeting, and return their date, duration, platform and participants."""
    head = text[:_LOOKED_AT]
    people, listed = _PARTICIPANTS.search(head), _LIST.search(head)
    signs = (_TITLE.search(head[:300]), people or listed, _PARTS.search(head), _DATE.search(head))
    platform = _KNOWN_PLATFORM.search(head)
    fields = {
        "date": _first(_DATE, head),
        "duration": _first(_DURATION, head),
        "platform": platform[1] if platform else _first(_PLATFORM, head),
        "participants": [name.strip(" .*_") for name in re.split(r"[,;]| and | und ", people[1])] if people else [],
    }
    if listed and not people:
        fields["participants"] = [line.strip(" \t-*+") for line in listed[1].splitlines()]
    return (people or listed) is not None and sum(map(bool, signs)) >= 3, present(fields)


def _first(pattern: re.Pattern[str], text: str, marks: str = " *_") -> str | None:
    found = pattern.search(text)
    return found[1].strip(marks) if found else None


_HEAD = 6000
_QUOTES = " \"'"
_FRONT_MATTER = re.compile(r"\A---\n(.{0,4000}?)\n---\n", re.DOTALL)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]++(\S[^\n]*+)", re.MULTILINE)
_AUTHOR = re.compile(r"(?im)^(?:by|author|von|autor(?:in)?):?[ \t]++(\S[^\n]{0,120})$")
_DATED = re.compile(r"(?im)^(?:published|date|updated|datum|stand)(?: on)?:?[ \t]++([^\n]{4,40})$")
_URL = re.compile(r"(?im)^(?:url|source|link|canonical|quelle):?[ \t]++(https?://\S{1,2000})")
_PAGES = re.compile(r"(?im)^(?:pages|page ?count):[ \t]*+(\d{1,6})$")


def describe(name: str, text: str, doc_type: DocType | None = None) -> tuple[DocType, dict[str, Any]]:
    """Return the type of a text, by default detected from name and content, and its tier 1 annotations.

    Unknown fields are left out. The time is linear in the length of the text.
    """
    if doc_type is None:
        doc_type = _detected(name, text)
    return doc_type, _tier1(doc_type, name, text)


def _detected(name: str, text: str) -> DocType:
    if language_of(name):
        return "code"
    if mail_facts(text)[0]:
        return "email"
    if chat_facts(name, text)[0]:
        return "slack"
    return "meeting" if meeting_facts(text)[0] else "text"


def _tier1(doc_type: DocType, name: str, text: str) -> dict[str, Any]:
    match doc_type:
        case "code":
            return outline(text, language)[1] if (language := language_of(name)) else {}
        case "email":
            return mail_facts(text)[1]
        case "slack":
            return chat_facts(name, text)[1]
        case "meeting":
            return meeting_facts(text)[1]
        case "article":
            return _stated(name, text, "publishDate", url=True)
        case "pdf":
            pages = _PAGES.search(text[:_HEAD])
            return {**_stated(name, text, "createdDate"), **({"pageCount": int(pages[1])} if pages else {})}
        case "image":
            return present({"mimeType": mimetypes.guess_type(name)[0]})
        case _:
            return {}


def _stated(name: str, text: str, dated: str, *, url: bool = False) -> dict[str, Any]:
    """Return title, author and date from the first lines or the front matter of a text."""
    head = text[:_HEAD]
    front = _FRONT_MATTER.match(head)
    stated = front[1] if front else head
    title = re.search(r"(?im)^title:[ \t]*+(\S[^\n]*+)", stated) or _HEADING.search(head)
    address = _URL.search(stated)
    fields = {
        "title": title[1].strip(" \"'#") if title else None,
        "author": _first(_AUTHOR, stated, _QUOTES),
        dated: _first(_DATED, stated, _QUOTES),
        "url": (address[1] if address else name if re.match(r"https?://", name) else None) if url else None,
    }
    return present(fields)


# Of these, people write the beginning. Logs and settings begin with anything.
_PROSE = frozenset({"txt", "text", "rst", "adoc", "org"})


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Return the text, without front matter if people have written it."""
    text = as_spoken(decoded(content, origin))
    doc_type, tier1 = describe(origin.name, text)
    if origin.file_type not in _PROSE:
        return Reading(text, doc_type, tier1=tier1)
    note = noted(text)
    title = note.title or (first_line_title(note.text) if doc_type in ("text", "meeting") else "")
    return replace(note, doc_type=doc_type, title=title, tier1=tier1)


def decoded(content: bytes, origin: FileOrigin) -> str:
    """Return the bytes as text. Raises `Unreadable` for binary data."""
    text = decode(content, origin.charset)
    if text is None:
        raise Unreadable(
            "holds binary data, or text in an encoding that is not recognised: if it is text, save it as UTF-8"
        )
    return text


def read_code(content: bytes, origin: FileOrigin) -> Reading:
    """Return the source, unchanged."""
    text = decoded(content, origin)
    marks, tier1 = outline(text, language_of(origin.name) or origin.file_type)
    return Reading(text, "code", marks=marks, tier1=tier1)


def read_markdown(content: bytes, origin: FileOrigin) -> Reading:
    """Return the text of a Markdown file, without its front matter, with what a reader sees of wiki links."""
    text = decoded(content, origin)
    doc_type, tier1 = describe(origin.name, text)
    note = noted(text)
    body, links = resolved(without_tags(seen(note.text)))
    properties = {**note.properties, **({"links": links} if links else {})}
    return Reading(body, doc_type, note.title or title_of(origin.name, body), sections(body), tier1, properties)
