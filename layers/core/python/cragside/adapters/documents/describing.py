"""Detects the type of a document, and annotates it without a model (tier 1)."""

import mimetypes
import re
from typing import Any

from cragside.adapters.documents.chats import chat_facts
from cragside.adapters.documents.emails import mail_facts
from cragside.adapters.documents.languages import language_of, outline
from cragside.adapters.documents.meetings import meeting_facts
from cragside.adapters.documents.reading import present
from cragside.domain.document import DocType

_HEAD = 6000
_FRONT_MATTER = re.compile(r"\A---\n(.{0,4000}?)\n---\n", re.DOTALL)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]++(\S[^\n]*+)", re.MULTILINE)
_AUTHOR = re.compile(r"(?im)^(?:by|author|von|autor(?:in)?):?[ \t]++(\S[^\n]{0,120})$")
_DATED = re.compile(r"(?im)^(?:published|date|updated|datum|stand)(?: on)?:?[ \t]++([^\n]{4,40})$")
_URL = re.compile(r"(?im)^(?:url|source|link|canonical|quelle):?[ \t]++(https?://\S{1,2000})")
_PAGES = re.compile(r"(?im)^(?:pages|page ?count):[ \t]*+(\d{1,6})$")


def describe(name: str, text: str, doc_type: DocType | None = None) -> tuple[DocType, dict[str, Any]]:
    """The type of a text, by default detected from name and content, and its tier 1 annotations.

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
    """Title, author and date from the first lines or the front matter of a text."""
    head = text[:_HEAD]
    front = _FRONT_MATTER.match(head)
    stated = front[1] if front else head
    title = re.search(r"(?im)^title:[ \t]*+(\S[^\n]*+)", stated) or _HEADING.search(head)
    address = _URL.search(stated)
    fields = {
        "title": title[1].strip(" \"'#") if title else None,
        "author": _value(_AUTHOR, stated),
        dated: _value(_DATED, stated),
        "url": (address[1] if address else name if re.match(r"https?://", name) else None) if url else None,
    }
    return present(fields)


def _value(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1].strip(" \"'") if found else None
