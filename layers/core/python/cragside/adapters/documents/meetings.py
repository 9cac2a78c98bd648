"""Detects notes of meetings by their typical lines."""

import re
from typing import Any

from cragside.adapters.documents.reading import present

_HEAD = 6000
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
    """Whether a text is the notes of a meeting, and their date, duration, platform and participants."""
    head = text[:_HEAD]
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


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1].strip(" *_") if found else None
