"""Texts made to keep a regular expression busy: in a process of their own, which the system ends when it hangs."""

import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing import get_context

import pytest

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.emails import read as read_email
from cragside.adapters.documents.exports import chat_facts as chat
from cragside.adapters.documents.html import read as read_page
from cragside.adapters.documents.languages import _LONGEST_LINE, BY_ENDING, outline
from cragside.adapters.documents.markdown_syntax import sections, title_of
from cragside.adapters.documents.reading import FileOrigin, Unreadable
from cragside.adapters.documents.structured import read as read_json
from cragside.adapters.documents.texts import describe
from cragside.adapters.documents.texts import read as read_text
from cragside.adapters.documents.texts import read_markdown as read_note
from cragside.adapters.documents.transcripts import read as read_transcript
from cragside.adapters.searxng import cleaned, failed_engines
from cragside.domain.neutral import as_memory, as_name, unlabelled
from tests.bounds import read_within

pytestmark = [pytest.mark.slow, pytest.mark.interpreter]

# A fork has what its parent has imported.
FORK = get_context("fork")
# Of CPU, so that a busy machine does not matter: for one text, and until the system ends the process.
SECONDS = 5
SECONDS_OF_ALL = 16
PIECES = (
    "<!--", "<!-- -", "<!--x", "<script", "<script>", "</script ", "<a ", "<a", "<", "< ", "</ ", "</", "<|", "<｜",
    "<evidence", "<evidence ", "</evidence", "<evidence/", "<\n", "[INST", "[/", "&#9", "&", "\u200b<", "# ", "#",
    " #", "#\n",
    "[1", "[[", "[ ", "[1]", "【", "&#91;", "(local, ", "(relevance ", "a) ", "<br>", "<b ", "= ", "**",
    "\n**a", "user ", "user:", "<user>", '<user> "', "<user> x", "\n<user> x", "\nuser</b>", "[user] ", "user</b>: ",
    "\n[user</b>",
    "\u0301", "\u200c", "❤\ufe0f", "\u2028", "> ", "]~", "<[", "{1",
    "[1](", "[1](local, ", "1 .pdf ", "② a.pdf ", "② a.b.c.d ",
    "\n# ", "\n#\t \t#", "```", "```\n", "\n~~~", "---\n", "---\n\n", "\n---", "x #", " ", "\t", "\n",
)  # fmt: skip
HEADS = ("", "<", "</", "< /", "<evidence", "</script", "<script>", "# ", "# x", "# x #", "#\t#")
HEADS += ("---\n", "```\n", "&#")
BLANKS = (" ", "\t", "\n", "#", " #", "9")
# What the readers of documents look out for.
SIGNS = (
    "[", "{", '"', "[[", '{"a":', '"\\', "a: b\n", "From: a\nTo: b\n", "From: a\n b", "a-b:", "\n\t",
    "<a@b", "=?utf-8?q?", "00:00:00.000 --> ", "00:00:00.000 --> 00:00:01.000\n", "<v a", "<v.a", "</", "A a",
    "A: ", "[12:00] a", "12:00 <a", "a [12:00", "channel: ", "#a", "Participants: ", "Participants:\n- a\n",
    "Date: ", "- ", "by ", "url: http://", "def a(", "class ", "function ", "export ", "import {",
    "const a = (", "__all__ = [", "public static ", "(", "::", "//", "/*", "'", "=", "==\n", "\0", "\xff",
    "\u00e9", "1. ", "> ", "[[a|", "[[a]]`", "`[[", "---\na: [", "? ", "&a *a ", "<div><p>",
    "<meta charset=", "<!DOCTYPE [",
)  # fmt: skip


def texts() -> Iterator[Callable[[int], str]]:
    for piece in (*PIECES, *SIGNS):
        yield partial(repeated, "", piece)
    for head in HEADS:
        for blank in BLANKS:
            yield partial(repeated, head, blank)
    yield cut_within_a_string


def cut_within_a_string(length: int) -> str:
    """JSON that ends behind a backslash, after many quotes."""
    return '"' + '\\"' * (length // 2) + "\\"


def repeated(head: str, piece: str, length: int) -> str:
    return head + (piece * length)[:length] + "x"


def tried(read: Callable[[bytes, FileOrigin], object], ending: str) -> Callable[[str], None]:
    def attempt(text: str) -> None:
        with suppress(Unreadable):
            read(text.encode(), FileOrigin("x" + ending, ending.lstrip(".")))

    return attempt


def outlined(text: str) -> None:
    # Longer lines are not looked at.
    lines = "\n".join([text[:_LONGEST_LINE]] * 3)[:5_000]
    for language in sorted(set(BY_ENDING.values())):
        outline(lines, language)


def decoded(text: str) -> None:
    for encoding in ("utf-8", "utf-16", "utf-16-le", "utf-32"):
        decode(text.encode(encoding))


READINGS: dict[str, Callable[[str], object]] = {
    "memory": lambda text: as_memory(text[:20_000]),
    "name": lambda text: as_name(text, 20_000),
    "unlabelled": lambda text: unlabelled(text[:20_000]),
    "title": lambda text: title_of("x.md", text),
    "results": lambda text: cleaned({"results": [{"title": text, "url": "https://a.example/", "content": text}]}, 10),
    "failed engines": lambda text: failed_engines({"unresponsive_engines": [[text, text]]}),
    "sections": sections,
    "decoded": decoded,
    "description": lambda text: describe("x.md", text),
    "chat": lambda text: chat("x.txt", text),
    "outlines": outlined,
    "json": tried(read_json, ".json"),
    "jsonl": tried(read_json, ".jsonl"),
    "vtt": tried(read_transcript, ".vtt"),
    "srt": tried(read_transcript, ".srt"),
    "eml": tried(read_email, ".eml"),
    "html": tried(read_page, ".html"),
    "notes": tried(read_note, ".md"),
    "plain texts": tried(read_text, ".txt"),
}


def read_all(reading: str) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_OF_ALL, SECONDS_OF_ALL))
    for text in texts():
        read_within(SECONDS, READINGS[reading], text)


@pytest.mark.parametrize("reading", READINGS)
def test_reading_a_text_made_to_be_slow_ends(reading: str) -> None:
    process = FORK.Process(target=read_all, args=(reading,))
    process.start()
    process.join()
    assert process.exitcode == 0
