"""Reads JSON and JSON lines as indented text with unchanged numbers. Slack's exports become chats."""

import json
import re
from typing import Any

import orjson

from cragside.adapters.documents import chats
from cragside.adapters.documents.reading import Composer, FileOrigin, Reading, Unreadable
from cragside.adapters.documents.texts import decoded

_DEEPEST = 100
_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*(?:"|\Z)|([\[{])|([\]}])', re.DOTALL)


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The values, indented. Raises `Unreadable` for invalid JSON, and for JSON that is nested too deeply."""
    text = decoded(content, origin)
    _check_depth(text)
    if origin.file_type in ("jsonl", "ndjson"):
        return _lines(text, origin)
    try:
        value = _parsed(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and "\n" in text[: error.pos]:
            return _lines(text, origin)
        raise Unreadable(
            f"is not valid JSON (line {error.lineno}: {error.msg}); as .txt it is indexed as text"
        ) from None
    if chats.is_export(value):
        messages, tier1 = chats.exported(json.loads(text), origin.name)
        return Reading(messages, "slack", tier1=tier1)
    return Reading(_laid_out(value, text))


def _lines(text: str, origin: FileOrigin) -> Reading:
    values: list[Any] = []
    composer = Composer()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values.append(_parsed(line))
        except json.JSONDecodeError as error:
            raise Unreadable(f"is not valid JSON in line {number}: {error.msg}") from None
        composer.add(_laid_out(values[-1], line))
    if chats.is_export(values):
        messages, tier1 = chats.exported([json.loads(line) for line in text.split("\n") if line.strip()], origin.name)
        return Reading(messages, "slack", tier1=tier1)
    return Reading(composer.text)


def _parsed(text: str) -> Any:
    try:
        # Numbers keep their form: 19.90 is a price, and long numbers do not fit a float.
        return json.loads(text, parse_float=_as_written, parse_int=_as_written, parse_constant=_as_written)
    except RecursionError:
        raise Unreadable(f"is nested more than {_DEEPEST} deep, which is the limit") from None


def _as_written(number: str) -> orjson.Fragment:
    return orjson.Fragment(number.encode())


def _laid_out(value: Any, text: str) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:
        return text  # it has lone surrogates, which orjson refuses


def _check_depth(text: str) -> None:
    depth = 0
    for found in _BRACKET.finditer(text):
        depth += (found[1] is not None) - (found[2] is not None)
        if depth > _DEEPEST:
            raise Unreadable(f"is nested more than {_DEEPEST} deep, which is the limit")
