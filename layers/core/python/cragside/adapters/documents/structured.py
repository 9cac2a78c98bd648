"""Reads JSON and JSON lines, notebooks and canvases, CSV and TSV."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import orjson
from typing_extensions import override

from cragside.adapters.documents.exports import conversation_export, document_export, is_slack_export, slack_export
from cragside.adapters.documents.markdown_syntax import resolved, sections, seen, title_of, without_tags
from cragside.adapters.documents.reading import MAX_LISTED, Composer, FileOrigin, Reading, Unreadable, label, present
from cragside.adapters.documents.tables import TableRow, Tables
from cragside.adapters.documents.texts import decoded
from cragside.adapters.documents.texts import read as read_text

_ADDRESS = re.compile(r"\s{0,9}(?:https?|ftp|mailto|tel):", re.IGNORECASE)
_SHOWN = {"text": "text", "file": "file", "link": "url", "group": "label"}


def canvas_export(value: Any) -> Reading | None:
    """Return the cards from top to bottom and the labelled arrows; None if the value is no canvas."""
    nodes = value.get("nodes") if isinstance(value, Mapping) else None
    if not isinstance(nodes, list) or not all(
        isinstance(node, Mapping) and node.get("type") in _SHOWN for node in nodes
    ):
        return None
    composer, links, names = Composer(), list[str](), dict[str, str]()
    for node in sorted(nodes, key=lambda each: (_place(each.get("y")), _place(each.get("x")))):
        written = node.get(_SHOWN[node["type"]])
        if not isinstance(written, str) or not written.strip():
            continue
        if node["type"] == "link" and not _ADDRESS.match(written):
            continue
        text, linked = resolved(f"[[{written}]]" if node["type"] == "file" else without_tags(seen(written)))
        if not text.strip():
            continue
        links += linked
        names[str(node.get("id"))] = text.strip().split("\n")[0][:120]
        composer.add(text.strip())
    edges = value.get("edges")
    for edge in edges if isinstance(edges, list) else []:
        if isinstance(edge, Mapping) and isinstance(edge.get("label"), str):
            ends = (names.get(str(edge.get(end)), "") for end in ("fromNode", "toNode"))
            composer.add(f"{' → '.join(ends)}: {seen(edge['label'])}", end="\n")
    named = list(dict.fromkeys(links))[:MAX_LISTED]
    return Reading(composer.text, properties={"links": named} if named else {})


def _place(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


_DEEPEST = 100
_MOST_NAMED = 5
_LONGEST_INTEGER = 300
# Each export has one of these keys. Other data is not looked at twice.
_MARK = re.compile(r'"(?:ts|mapping|messages|chat_messages|page_?[cC]ontent|values|nodes)"')
# A string that is cut off, also behind a backslash, goes to the end: else each of its quotes would begin another try.
_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?+\Z)|([\[{])|([\]}])', re.DOTALL)


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Return the values, indented. Raises `Unreadable` for invalid JSON, and for JSON that is nested too deeply."""
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
    """Return the values of the lines.

    A line that is no JSON costs that line. Raises `Unreadable` if most lines are none.
    """
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
    """A second key of the same name in an object. It equals no other key, so that no value is lost."""

    __slots__ = ()
    __hash__ = object.__hash__

    @override
    def __eq__(self, other: object) -> bool:
        return self is other


def _parsed(text: str) -> tuple[Any, bool]:
    """Return the value, and whether an object in it has a key twice."""
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
    """Return the value with Python's numbers."""
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


_LONGEST_OUTPUT = 4000
_MOST_OUTPUTS = 50
_LANGUAGE = 30


def read_notebook(content: bytes, origin: FileOrigin) -> Reading:
    """Return the cells as Markdown, with headings as sections."""
    try:
        book = orjson.loads(decoded(content, origin))
    except orjson.JSONDecodeError:
        raise Unreadable("is damaged, or not a notebook (.ipynb)") from None
    if not isinstance(book, dict):
        raise Unreadable("is damaged, or not a notebook (.ipynb)")
    language = _language(book)
    # Notebooks before 2015 have their cells in worksheets.
    sheets = [book, *(sheet for sheet in _listed(book.get("worksheets")) if isinstance(sheet, dict))]
    cells = [cell for sheet in sheets for cell in _listed(sheet.get("cells")) if isinstance(cell, dict)]
    text = "\n\n".join(block for cell in cells for block in _blocks(cell, language))
    if not text.strip():
        raise Unreadable("is a notebook without text")
    title = title_of(f"{origin.name}.md", text)
    marks = sections(text)
    tier1 = present({"lang": language or None})
    return Reading(text, "text", title if marks else "", marks, tier1)


def _blocks(cell: Mapping[str, Any], language: str) -> Iterator[str]:
    source = _joined(cell.get("source", cell.get("input"))).strip("\n")
    if cell.get("cell_type") == "heading":
        level = cell.get("level")
        yield f"{'#' * (level if isinstance(level, int) and 1 <= level <= 6 else 1)} {label(source)}"
    elif cell.get("cell_type") != "code":
        yield source
    elif source.strip():
        yield _fenced(source, language)
        for output in _listed(cell.get("outputs"))[:_MOST_OUTPUTS]:
            shown = _shown(output) if isinstance(output, dict) else ""
            if shown.strip():
                yield _fenced(shown, "")


def _shown(output: Mapping[str, Any]) -> str:
    """Return the text of an output, shortened. Pictures and pages are left out."""
    if output.get("output_type") in ("error", "pyerr"):
        text = f"{_joined(output.get('ename'))}: {_joined(output.get('evalue'))}"
    else:
        data = output.get("data")
        text = _joined(output.get("text")) or (_joined(data.get("text/plain")) if isinstance(data, dict) else "")
    text = text.strip("\n")
    return text if len(text) <= _LONGEST_OUTPUT else f"{text[:_LONGEST_OUTPUT]} …"


def _fenced(code: str, language: str) -> str:
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{code}\n{fence}"


def _language(book: Mapping[str, Any]) -> str:
    metadata = book.get("metadata")
    for name in ("kernelspec", "language_info"):
        about = metadata.get(name) if isinstance(metadata, dict) else None
        language = (about.get("language") or about.get("name")) if isinstance(about, dict) else None
        if isinstance(language, str) and language.isalnum():
            return language[:_LANGUAGE].lower()
    return ""


def _joined(text: Any) -> str:
    """Return a text that is written as a string or as a list of lines."""
    return text if isinstance(text, str) else "".join(line for line in _listed(text) if isinstance(line, str))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_DELIMITERS = ",;\t|"
_SAMPLE = 64 * 1024
_LOOKED_AT = 100
# So many rows, and so many of those below a preamble, make a table.
_FEWEST = 3
_MOST = 0.8
# Values with another delimiter were probably cut by the wrong one. Commas are also in numbers and texts.
_STRAY = re.compile(r"[;\t|]|,(?![\s\d])")


def read_delimited(content: bytes, origin: FileOrigin) -> Reading:
    """Return the rows with their headers. A file without columns is read as plain text."""
    text = decoded(content, origin)
    # Excel's own first line, which is no row.
    stated = text[4] if text[:4].lower() == "sep=" and text[5:6] == "\n" else ""
    delimiter = stated or _delimiter(text[:_SAMPLE], preferred="\t" if origin.file_type == "tsv" else ",")
    # A quote without an end would make the rest of the file one value. Then quotes are characters like others.
    for quoted in (True, False) if delimiter else ():
        with suppress(csv.Error):
            tables = Tables(len(content))
            tables.add("", islice(_rows(text, delimiter, quoted=quoted), 1 if stated else 0, None))
            return tables.reading()
    return read_text(content, origin)


def _rows(text: str, delimiter: str, *, quoted: bool) -> Iterator[TableRow]:
    """Yield the records with the numbers that a spreadsheet gives them."""
    lines = io.StringIO(text, newline="")
    if quoted:
        return enumerate(csv.reader(lines, delimiter=delimiter, strict=True), 1)
    return enumerate(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE), 1)


def _delimiter(sample: str, *, preferred: str) -> str:
    """Return the delimiter that gives most rows the same number of whole values, or "" if none gives columns."""
    best, chosen = 0.0, ""
    for delimiter in sorted(_DELIMITERS, key=lambda each: each != preferred):
        rows = list[list[str]]()
        # The sample's last row may be cut off.
        with suppress(csv.Error):
            lines = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
            rows += filter(None, islice(lines, _LOOKED_AT))
        widths = Counter(len(cells) for cells in rows if len(cells) > 1)
        columns, count = max(widths.items(), key=lambda each: (each[1], each[0]), default=(0, 0))
        if not count or not _is_table(rows, columns):
            continue
        cells = [cell for cells in rows if len(cells) == columns for cell in cells]
        cut = sum(bool(_STRAY.search(cell.replace(delimiter, ""))) for cell in cells)
        if (share := count * (1 - cut / len(cells))) > best:
            best, chosen = share, delimiter
    return chosen


def _is_table(rows: Sequence[Sequence[str]], columns: int) -> bool:
    """Tell if half of the rows have several values, or most of those below a preamble have `columns` values."""
    if 2 * sum(len(cells) > 1 for cells in rows) >= len(rows):
        return True
    begin = next(at for at, cells in enumerate(rows) if len(cells) == columns)
    count = sum(len(cells) == columns for cells in rows)
    return count >= _FEWEST and count >= _MOST * (len(rows) - begin)
