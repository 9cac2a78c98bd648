"""Turning evidence into the block that a prompt carries.

Evidence is untrusted: it is numbered, delimited, and can neither close its block nor smuggle a chat template's
control tokens. What does not fit the token budget is left out, least relevant first.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cragside.domain.document import Document
from cragside.domain.personas import PLAIN

CountTokens = Callable[[str], int]

_OPEN = "<evidence>"
_CLOSE = "</evidence>"
# Control tokens of the chat templates in circulation (ChatML, Llama, Gemma, Mistral, Phi, DeepSeek, Qwen, GLM)
# and our own delimiter. Ordinary mark-up and generics such as List<int> stay as they are.
# Blanks are taken possessively: given back one by one, a long run of them would be read over and over.
_CONTROL_TOKEN = re.compile(
    r"<\s*+(?:/\s*+)?+evidence\b[^>]*+>?"
    r"|<[|｜][^<>\n]{0,64}[|｜]?>?"
    r"|</?(?:s|sop|eop|bos|eos|pad|unk|mask|think|tool_call|tool_response|tools|(?:bos|eos)_token|extra_id_\d+|unused\d+"
    r"|start_of_turn|end_of_turn|start_of_image|end_of_image|fim_(?:prefix|middle|suffix|pad))>"
    r"|<</?SYS>>"
    r"|\[/?(?:INST|THINK|ARGS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|[gs]?MASK)\]",
    re.IGNORECASE,
)
_LOOKALIKE = str.maketrans({"<": "‹", ">": "›", "[": "⟦", "]": "⟧", "|": "¦", "｜": "¦"})
# Joiners (U+200C, U+200D) stay: Persian, Indic scripts and emoji are spelt with them.
_CONTROL_CHARACTER = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
# What would pass for the heading of another piece of evidence.
_NUMBER = re.compile(r"^([ \t]*)\[(\d+)\]", re.MULTILINE)

# Two headings of 120 characters, which is the most that a loader keeps of one.
_LONGEST_PLACE = 260


def neutralise(text: str) -> str:
    """The text with control tokens made harmless and invisible control characters removed; all else as it was."""
    visible = _CONTROL_CHARACTER.sub("", text)
    return _CONTROL_TOKEN.sub(lambda match: match.group().translate(_LOOKALIKE), visible)


def unnumbered(text: str) -> str:
    """The text without what would pass for the heading of a piece of evidence."""
    return _NUMBER.sub(r"\1⟦\2⟧", text)


@dataclass(frozen=True, slots=True)
class PackedContext:
    """The block to inject ("" when nothing fits) and the documents in it, in the order of their numbers."""

    block: str
    documents: tuple[Document, ...]


def pack(
    documents: Sequence[Document], *, budget: int, count_tokens: CountTokens, instruction: str = PLAIN
) -> PackedContext:
    """Evidence as one delimited block of at most `budget` tokens, best document first.

    `instruction` stands ahead of the evidence and says what to do with it. A document that is too long for what is left
    is cut at a word; with fewer than 32 tokens left it is dropped.
    """
    left = budget - _frame_tokens(count_tokens, instruction)
    entries: list[str] = []
    packed: list[Document] = []
    for document in documents:
        head = _heading(len(packed) + 1, document)
        room = left - count_tokens(head) - 4
        if room < 32:
            break
        body, tokens = cut(unnumbered(neutralise(document.content).strip()), room, count_tokens)
        if body:
            left = room - tokens
            entries.append(f"{head}\n{body}")
            packed.append(document)
    if not entries:
        return PackedContext("", ())
    joined = "\n\n".join(entries)
    return PackedContext(f"{instruction}\n{_OPEN}\n{joined}\n{_CLOSE}", tuple(packed))


def _heading(number: int, document: Document) -> str:
    filename = document.metadata.get("filename")
    named = [document.title or document.id, *(str(v) for v in (filename, document.url) if v and v != document.title)]
    line = _on_one_line(" - ".join(dict.fromkeys(named)), 300)
    score = () if document.score is None else (f"relevance {document.score:.2f}",)
    return f"[{number}] {line} ({', '.join((*_place(document), document.source, *score))})"


def _place(document: Document) -> tuple[str, ...]:
    """Where in its file the passage is, as far as that is known."""
    page, section = document.metadata.get("page"), document.metadata.get("section")
    shown = (f"p. {page}" if page else "", f"section {section}" if section else "")
    return tuple(_on_one_line(part, _LONGEST_PLACE) for part in shown if part)


def _on_one_line(text: str, limit: int) -> str:
    return " ".join(neutralise(text).split())[:limit]


def cut(text: str, budget: int, count_tokens: CountTokens) -> tuple[str, int]:
    """The text, cut at a word to at most `budget` tokens if need be, and its tokens."""
    total = count_tokens(text)
    while total > budget and text:
        keep = int(len(text) * budget / total * 0.95)
        text = text[:keep].rsplit(None, 1)[0] + " …" if keep > 8 else ""
        total = count_tokens(text)
    return text, total


@lru_cache(maxsize=32)
def _frame_tokens(count_tokens: CountTokens, instruction: str) -> int:
    return count_tokens(f"{instruction}\n{_OPEN}\n{_CLOSE}")
