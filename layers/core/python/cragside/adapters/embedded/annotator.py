"""Annotates texts (tiers 2 and 3) by rules, which only quote from the text."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import override

from cragside.adapters.embedded.extraction import extract
from cragside.adapters.embedded.language import iso_639_1
from cragside.adapters.embedded.summary import (
    action_items_in,
    decisions_in,
    headings_of,
    is_urgent,
    key_terms,
    summary_of,
)
from cragside.application.attempts import DESCRIBED_CHARACTERS, Annotator
from cragside.domain.document import DocType

BY = "embedded"
_DOCSTRING = re.compile(
    r'"""(.{10,2000}?)"""|\'\'\'(.{10,2000}?)\'\'\'|/\*\*?((?:[^*/]|\*(?!/)|/(?!\*)){10,2000}+)\*/', re.DOTALL
)
_COMMENTS = re.compile(r"\A(?:#!.*\n)?((?:[ \t]*(?:#|//|--)(?!!).*\n){1,20})")
_COMMENT_MARK = re.compile(r"^[ \t]*(?:#+|//+|--|\*)[ \t]?", re.MULTILINE)
_MAIL_HEADER = re.compile(r"\A(?:[A-Za-z-]{2,40}+:[^\n]*+\n(?:[ \t][^\n]*+\n)*+)++")

Field = Callable[[str], Any]


class EmbeddedAnnotator(Annotator):
    """Annotates by rules, in time linear in the length of the text. Equal texts get equal annotations.

    Tier 3 has the fields that rules can fill; `by` is `embedded`. It lacks fields that need understanding, such as
    intent, sentiment or purpose.
    """

    @override
    def tier2(self, text: str) -> dict[str, Any]:
        entities, _ = extract(text)
        return {
            "entities": [{"text": entity.name, "label": entity.kind} for entity in entities],
            "keywords": key_terms(text),
            "language": iso_639_1(text),
        }

    @override
    async def tier3(self, doc_type: DocType, text: str) -> dict[str, Any]:
        return {**extractive(doc_type, text[:DESCRIBED_CHARACTERS]), "by": BY}


def extractive(doc_type: DocType, text: str) -> dict[str, Any]:
    """The fields of tier 3 that can be taken from the text."""
    found = {name: field(text) for name, field in _FIELDS[doc_type].items()}
    return {name: value for name, value in found.items() if value}


def _comment(code: str) -> str:
    """The first paragraph of the code's comment or docstring."""
    opening = _COMMENTS.match(code)
    quoted = _DOCSTRING.search(code)
    if opening:
        comment = _COMMENT_MARK.sub("", opening.group(1))
    elif quoted:
        comment = _COMMENT_MARK.sub("", next(filter(None, quoted.groups())))
    else:
        return ""
    return " ".join(comment.strip().partition("\n\n")[0].split())[:600]


def _mail_body(mail: str) -> str:
    return _MAIL_HEADER.sub("", mail, count=1)


def _names(text: str) -> list[str]:
    return [entity.name for entity in extract(text)[0]]


_FIELDS: Mapping[DocType, Mapping[str, Field]] = {
    "code": {"summary": _comment},
    "email": {
        "urgency": lambda mail: "high" if is_urgent(mail) else None,
        "action_items": lambda mail: action_items_in(_mail_body(mail)),
        "summary": lambda mail: summary_of(_mail_body(mail)),
    },
    "meeting": {"decisions": decisions_in, "action_items": action_items_in, "topic_segments": headings_of},
    "slack": {"summary": summary_of, "decisions": decisions_in, "action_items": action_items_in},
    "article": {"summary": summary_of, "tags": key_terms},
    "pdf": {"summary": summary_of, "key_entities": _names, "sections": headings_of},
    "image": {},
    "text": {"summary": summary_of, "key_entities": _names},
}
