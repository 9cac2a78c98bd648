"""Packs evidence into the block of a prompt, as quoted text that it cannot forge or leave.

Evidence is untrusted. Delimiters and numbered headings carry a random code of the request. Text in the evidence that
looks like a delimiter or a heading is altered. If the token budget is exceeded, the least relevant evidence is left
out.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cragside.domain.evidence import Document, number_of
from cragside.domain.neutral import as_name, as_passage
from cragside.domain.preferences import PLAIN

# Without vowels no code is a word. Characters that look like others are left out.
_ALPHABET = "bcdfghjkmnpqrstvwxz23456789"
CODE_LENGTH = 6
_SECRET = secrets.token_bytes(32)

_OPENING = re.compile(r"^<(?:evidence|memory)-(\w{6})>$", re.MULTILINE)
_CLOSING = re.compile(r"^</(?:evidence|memory)-(\w{6})>$", re.MULTILINE)


def new_code() -> str:
    """Return a random code. A guess is right at most once in 280 million."""
    return _spelt(secrets.token_bytes(CODE_LENGTH))


def code_for(text: str) -> str:
    """Return a code that is equal for equal texts while the process lives, so that equal prompts get equal answers.

    It depends on the text and a secret of the process, so the author of the text cannot know it.
    """
    return _spelt(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=_SECRET, digest_size=CODE_LENGTH).digest())


def _spelt(data: bytes) -> str:
    return "".join([_ALPHABET[byte % len(_ALPHABET)] for byte in data])


def quoted(name: str, text: str, code: str, **attributes: object) -> str:
    """Return the text between the lines `<name-code>` and `</name-code>`. It must be neutral: see `domain.neutral`."""
    stated = "".join(f' {attribute}="{value}"' for attribute, value in attributes.items())
    return f"<{name}-{code}{stated}>\n{text}\n</{name}-{code}>"


def behind_blocks(text: str) -> str:
    """Return the part of a prompt after its last block of evidence or memory; the whole prompt if there is no block."""
    opened = {found[1] for found in _OPENING.finditer(text)}
    ends = [found.end() for found in _CLOSING.finditer(text) if found[1] in opened]
    return text[ends[-1] :].lstrip("\n") if ends else text


CountTokens = Callable[[str], int]
Order = Callable[[Sequence[Document]], Sequence[Document]]

# In an instruction, this stands for the code of the request.
CODE = "{code}"

_NAME = "evidence"
_LONGEST_TITLE = 300
# Two headings of 120 characters, the most that a loader keeps.
_LONGEST_PLACE = 260
# Those of "earlier than [12], ".
_TOKENS_OF_A_MARK = 8


@dataclass(frozen=True, slots=True)
class PackedContext:
    """The block ("" if nothing fits) and the documents in it, in the order of their numbers."""

    block: str
    documents: tuple[Document, ...]


def pack(
    documents: Sequence[Document],
    *,
    budget: int,
    count_tokens: CountTokens,
    instruction: str = PLAIN,
    code: str | None = None,
    ordered: Order = list,
) -> PackedContext:
    """Evidence as one delimited block of at most `budget` tokens. `documents` are given best first.

    `ordered` puts those that fit in the order of their numbers, and may mark them: an order decides no place.

    `instruction` precedes the evidence and says what to do with it. `{code}` in it becomes `code`, by default a random
    one. A document that exceeds the remaining budget is cut at a word; it is dropped if fewer than 32 tokens remain.
    """
    code = code or new_code()
    instruction_line = instruction.replace(CODE, code)
    left = budget - _frame_tokens(count_tokens, instruction)
    bodies: dict[tuple[str, str], str] = {}
    fitting: list[Document] = []
    for document in documents:
        mark = _TOKENS_OF_A_MARK if document.metadata.get("date") else 0
        room = left - count_tokens(_heading(fitting, document, code)) - 4 - mark
        if room < 32:
            break
        body, tokens = cut(as_passage(document.content).strip(), room, count_tokens)
        if body:
            left = room - tokens
            bodies[document.id, document.content] = body
            fitting.append(document)
    if not fitting:
        return PackedContext("", ())
    packed = tuple(ordered(fitting))
    entries = (
        f"{_heading(packed[:at], each, code)}\n{bodies[each.id, each.content]}" for at, each in enumerate(packed)
    )
    joined = "\n\n".join(entries)
    return PackedContext(f"{instruction_line}\n{quoted(_NAME, joined, code)}", packed)


@lru_cache(maxsize=64)
def _frame_tokens(count_tokens: CountTokens, instruction: str) -> int:
    """Count the tokens of instruction and delimiters, with a code of digits: no other code takes more tokens."""
    code = "2" * CODE_LENGTH
    return count_tokens(f"{instruction.replace(CODE, code)}\n{quoted(_NAME, '', code)}")


def _heading(before: Sequence[Document], document: Document, code: str) -> str:
    filename = document.metadata.get("filename")
    named = [document.title or document.id, *(str(v) for v in (filename, document.url) if v and v != document.title)]
    line = as_name(" - ".join(dict.fromkeys(named)), _LONGEST_TITLE)
    shown = (*_time(before, document), *_place(document), document.source, *_figure(document))
    return f"[{len(before) + 1}] {line} ({', '.join(shown)}) {code}"


def _time(before: Sequence[Document], document: Document) -> tuple[str, ...]:
    """Return the date of the passage if it is known, and the number of a later passage that answers as well."""
    date, later = document.metadata.get("date"), number_of(document.metadata.get("earlierThan"), before)
    shown = (as_name(str(date), _LONGEST_PLACE) if date else "", f"earlier than [{later}]" if later else "")
    return tuple(filter(None, shown))


def _figure(document: Document) -> tuple[str, ...]:
    """Return the relevance of the passage, or its similarity where nobody graded it."""
    if document.score is not None:
        return (f"relevance {document.score:.2f}",)
    return () if document.similarity is None else (f"similarity {document.similarity:.2f}",)


def _place(document: Document) -> tuple[str, ...]:
    """Return the page and the section of the passage, if they are known."""
    page, section = document.metadata.get("page"), document.metadata.get("section")
    shown = (f"p. {page}" if page else "", f"section {section}" if section else "")
    return tuple(as_name(part, _LONGEST_PLACE) for part in shown if part)


def cut(text: str, budget: int, count_tokens: CountTokens) -> tuple[str, int]:
    """Return the text, cut at a word to at most `budget` tokens, and the number of its tokens."""
    total = count_tokens(text)
    while total > budget and text:
        keep = int(len(text) * budget / total * 0.95)
        text = text[:keep].rsplit(None, 1)[0] + " …" if keep > 8 else ""
        total = count_tokens(text)
    return text, total
