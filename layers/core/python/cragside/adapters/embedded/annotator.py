"""Annotates texts (tiers 2 and 3) by rules, which only quote from the text."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from typing_extensions import override

from cragside.adapters.embedded.extraction import extract
from cragside.adapters.embedded.language import iso_639_1
from cragside.adapters.embedded.summary import (
    ACTION,
    DECISION,
    URGENT,
    headings_of,
    key_terms,
    sentences_with,
    summary_of,
)
from cragside.domain.document import DocType
from cragside.ports.annotator import DESCRIBED_CHARACTERS, Annotator

_BY = "embedded"
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
        read = text[:DESCRIBED_CHARACTERS]
        found = {name: field(read) for name, field in _FIELDS[doc_type].items()}
        return {**{name: value for name, value in found.items() if value}, "by": _BY}


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


_DECISIONS, _ACTIONS = partial(sentences_with, DECISION), partial(sentences_with, ACTION)
_FIELDS: Mapping[DocType, Mapping[str, Field]] = {
    "code": {"summary": _comment},
    "email": {
        "urgency": lambda mail: "high" if URGENT.search(mail) else None,
        "action_items": lambda mail: sentences_with(ACTION, _mail_body(mail)),
        "summary": lambda mail: summary_of(_mail_body(mail)),
    },
    "meeting": {"decisions": _DECISIONS, "action_items": _ACTIONS, "topic_segments": headings_of},
    "slack": {"summary": summary_of, "decisions": _DECISIONS, "action_items": _ACTIONS},
    "article": {"summary": summary_of, "tags": key_terms},
    "pdf": {"summary": summary_of, "key_entities": _names, "sections": headings_of},
    "image": {},
    "text": {"summary": summary_of, "key_entities": _names},
}
