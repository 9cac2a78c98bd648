"""Reads JSON and JSON lines as indented text with unchanged numbers. What programs export is read as its text."""

import json
import re
from dataclasses import replace
from typing import Any

import orjson
from typing_extensions import override

from cragside.adapters.documents.canvases import canvas_export
from cragside.adapters.documents.chat_exports import conversation_export
from cragside.adapters.documents.chats import is_slack_export, slack_export
from cragside.adapters.documents.exported_documents import document_export
from cragside.adapters.documents.reading import Composer, FileOrigin, Reading, Unreadable
from cragside.adapters.documents.texts import decoded

_DEEPEST = 100
_MOST_NAMED = 5
_LONGEST_INTEGER = 300
# Each export has one of these keys. Other data is not looked at twice.
_MARK = re.compile(r'"(?:ts|mapping|messages|chat_messages|page_?[cC]ontent|values|nodes)"')
# A string that is cut off, also behind a backslash, goes to the end: else each of its quotes would begin another try.
_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?+\Z)|([\[{])|([\]}])', re.DOTALL)


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The values, indented. Raises `Unreadable` for invalid JSON, and for JSON that is nested too deeply."""
    text = decoded(content, origin)
    _check_depth(text)
    if origin.file_type in ("jsonl", "ndjson"):
        return _lines(text, origin)
    try:
        value, repeats = _parsed(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and "\n" in text[: error.pos]:
            return _lines(text, origin)
        raise Unreadable(
            f"is not valid JSON (line {error.lineno}: {error.msg}); as .txt it is indexed as text"
        ) from None
    # Of a canvas, the last value of a key is shown.
    shown = origin.file_type == "canvas" or not repeats
    export = _plain(text) if shown and _MARK.search(text) else None
    return _exported(export, origin) or Reading(_laid_out(value, text))


def _exported(value: Any, origin: FileOrigin) -> Reading | None:
    """Write a program's export as people read it. Return None for other data."""
    if not value:
        return None
    if is_slack_export(value):
        messages, tier1 = slack_export(value, origin.name)
        return Reading(messages, "slack", tier1=tier1)
    if origin.file_type == "canvas":
        return canvas_export(value)
    return conversation_export(value) or document_export(value)


def _lines(text: str, origin: FileOrigin) -> Reading:
    """The values of the lines. A line that is no JSON costs that line. Raises `Unreadable` if most lines are none."""
    values, composer, cut, read = list[Any](), Composer(), list[str](), 0
    marked = _MARK.search(text) is not None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value, repeats = _parsed(line)
        except json.JSONDecodeError as error:
            cut.append(f"{number} ({error.msg})")
            continue
        read += 1
        marked = marked and not repeats
        values += [_plain(line)] if marked else []
        composer.add(_laid_out(value, line))
    if len(cut) > read:
        raise Unreadable(f"is not valid JSON in line {cut[0]}")
    reading = _exported(values if marked else None, origin) or Reading(composer.text)
    return replace(reading, unread=_told(cut)) if cut else reading


def _told(cut: list[str]) -> str:
    more = f" and {len(cut) - _MOST_NAMED} more" if len(cut) > _MOST_NAMED else ""
    lines = f"line {cut[0]} is" if len(cut) == 1 else f"lines {', '.join(cut[:_MOST_NAMED])}{more} are"
    return f"{lines} not valid JSON and was not read" if len(cut) == 1 else f"{lines} not valid JSON and were not read"


class _Repeated(str):
    """A key that its object has already. It equals no other, so that none of the values is lost."""

    __slots__ = ()
    __hash__ = object.__hash__

    @override
    def __eq__(self, other: object) -> bool:
        return self is other


def _parsed(text: str) -> tuple[Any, bool]:
    """The value, and whether an object in it has a key twice."""
    repeats = False

    def entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        repeats, found = True, {}
        for key, value in pairs:
            found[_Repeated(key) if key in found else key] = value
        return found

    try:
        # Numbers keep their form: 19.90 is a price, and long numbers do not fit a float.
        value = json.loads(
            text,
            parse_float=_as_written,
            parse_int=_as_written,
            parse_constant=_as_written,
            object_pairs_hook=entries,
        )
    except RecursionError:
        raise Unreadable(f"is nested more than {_DEEPEST} deep, which is the limit") from None
    return value, repeats


def _plain(text: str) -> Any:
    """The value with Python's numbers."""
    return json.loads(text, parse_int=_number)


def _number(digits: str) -> float:
    # Python refuses to read an integer of thousands of digits, and no float holds one of hundreds.
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def _as_written(number: str) -> orjson.Fragment:
    return orjson.Fragment(number.encode())


def _laid_out(value: Any, text: str) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        return text  # it has lone surrogates, which orjson refuses


def _check_depth(text: str) -> None:
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += (found[1] is not None) - (found[2] is not None)
        if depth > _DEEPEST:
            raise Unreadable(f"is nested more than {_DEEPEST} deep, which is the limit")
