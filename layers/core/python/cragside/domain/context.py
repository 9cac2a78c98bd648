"""Turning evidence into the block that a prompt carries.

Evidence is untrusted. It is numbered and stands between delimiters that carry a random code of the request, as does
each heading. What looks like either in the evidence is altered. What does not fit the token budget is left out, least
relevant first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cragside.domain.document import Document
from cragside.domain.neutral import as_name, as_passage
from cragside.domain.personas import PLAIN
from cragside.domain.quoting import CODE_LENGTH, new_code, quoted

CountTokens = Callable[[str], int]

# What an instruction says where the code of the request is to stand.
CODE = "{code}"

_NAME = "evidence"
_LONGEST_TITLE = 300
# Two headings of 120 characters, which is the most that a loader keeps of one.
_LONGEST_PLACE = 260


@dataclass(frozen=True, slots=True)
class PackedContext:
    """The block to inject ("" when nothing fits) and the documents in it, in the order of their numbers."""

    block: str
    documents: tuple[Document, ...]


def pack(
    documents: Sequence[Document],
    *,
    budget: int,
    count_tokens: CountTokens,
    instruction: str = PLAIN,
    code: str | None = None,
) -> PackedContext:
    """Evidence as one delimited block of at most `budget` tokens, best document first.

    `instruction` stands ahead of the evidence and says what to do with it; `{code}` in it becomes the code, which is
    random unless it is given. A document that is too long for what is left is cut at a word; with fewer than 32 tokens
    left it is dropped.
    """
    code = code or new_code()
    told = instruction.replace(CODE, code)
    left = budget - _frame_tokens(count_tokens, instruction)
    entries: list[str] = []
    packed: list[Document] = []
    for document in documents:
        head = _heading(len(packed) + 1, document, code)
        room = left - count_tokens(head) - 4
        if room < 32:
            break
        body, tokens = cut(as_passage(document.content).strip(), room, count_tokens)
        if body:
            left = room - tokens
            entries.append(f"{head}\n{body}")
            packed.append(document)
    if not entries:
        return PackedContext("", ())
    joined = "\n\n".join(entries)
    return PackedContext(f"{told}\n{quoted(_NAME, joined, code)}", tuple(packed))


@lru_cache(maxsize=64)
def _frame_tokens(count_tokens: CountTokens, instruction: str) -> int:
    """The tokens of what stands around the evidence. No code takes more than one of digits."""
    code = "2" * CODE_LENGTH
    return count_tokens(f"{instruction.replace(CODE, code)}\n{quoted(_NAME, '', code)}")


def _heading(number: int, document: Document, code: str) -> str:
    filename = document.metadata.get("filename")
    named = [document.title or document.id, *(str(v) for v in (filename, document.url) if v and v != document.title)]
    line = as_name(" - ".join(dict.fromkeys(named)), _LONGEST_TITLE)
    score = () if document.score is None else (f"relevance {document.score:.2f}",)
    return f"[{number}] {line} ({', '.join((*_place(document), document.source, *score))}) {code}"


def _place(document: Document) -> tuple[str, ...]:
    """Where in its file the passage is, as far as that is known."""
    page, section = document.metadata.get("page"), document.metadata.get("section")
    shown = (f"p. {page}" if page else "", f"section {section}" if section else "")
    return tuple(as_name(part, _LONGEST_PLACE) for part in shown if part)


def cut(text: str, budget: int, count_tokens: CountTokens) -> tuple[str, int]:
    """The text, cut at a word to at most `budget` tokens if need be, and its tokens."""
    total = count_tokens(text)
    while total > budget and text:
        keep = int(len(text) * budget / total * 0.95)
        text = text[:keep].rsplit(None, 1)[0] + " …" if keep > 8 else ""
        total = count_tokens(text)
    return text, total
