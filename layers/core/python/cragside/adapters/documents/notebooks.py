"""Reads Jupyter notebooks: notes and code in their order, with what the code printed. Nothing is run."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from cragside.adapters.documents.headings import sections, title_of
from cragside.adapters.documents.reading import FileOrigin, Reading, Unreadable, label, present
from cragside.adapters.documents.texts import decoded

_LONGEST_OUTPUT = 4000
_MOST_OUTPUTS = 50
_LANGUAGE = 30


def read_notebook(content: bytes, origin: FileOrigin) -> Reading:
    """The cells as Markdown, with headings as sections."""
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
    """The text of an output, shortened. Pictures and pages are left out."""
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
    """Texts are strings or lists of lines."""
    return text if isinstance(text, str) else "".join(line for line in _listed(text) if isinstance(line, str))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
