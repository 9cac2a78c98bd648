"""Texts made to keep a regular expression busy: in a process of their own, which the system ends when it hangs."""

import subprocess
import sys

import pytest

# Seconds of CPU, so that a busy machine does not matter; each reading takes some ten.
_PROLOGUE = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

from cragside.adapters.documents.chats import described as chat
from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.describing import describe
from cragside.adapters.documents.emails import read as read_email
from cragside.adapters.documents.html import read as read_page
from cragside.adapters.documents.languages import _LONGEST_LINE, BY_ENDING, outline
from cragside.adapters.documents.headings import sections, title_of
from cragside.adapters.documents.structured import read as read_json
from cragside.adapters.documents.transcripts import read as read_transcript
from cragside.adapters.documents.reading import Origin, Unreadable
from cragside.adapters.searxng.results import cleaned, failed_engines
from cragside.domain.neutral import as_memory, as_name, unlabelled

PIECES = (
    "<!--", "<!-- -", "<!--x", "<script", "<script>", "</script ", "<a ", "<a", "<", "< ", "</ ", "</", "<|", "<｜",
    "<evidence", "<evidence ", "</evidence", "<evidence/", "<\\n", "[INST", "[/", "&#9", "&", "\\u200b<", "# ", "#",
    " #", "#\\n",
    "[1", "[[", "[ ", "[1]", "【", "&#91;", "(local, ", "(relevance ", "a) ", "<br>", "<b ", "= ", "**",
    "\\n**a", "user ", "user:",
    "\\u0301", "\\u200c", "❤\\ufe0f", "\\u2028", "> ", "]~", "<[", "{1",
    "\\n# ", "\\n#\\t \\t#", "```", "```\\n", "\\n~~~", "---\\n", "---\\n\\n", "\\n---", "x #", " ", "\\t", "\\n",
)
HEADS = ("", "<", "</", "< /", "<evidence", "</script", "<script>", "# ", "# x", "# x #", "#\\t#")
HEADS += ("---\\n", "```\\n", "&#")
BLANKS = (" ", "\\t", "\\n", "#", " #", "9")
TEXTS = [(piece * 200_000)[:200_000] + "x" for piece in PIECES]
TEXTS += [head + (blank * 200_000)[:200_000] + "x" for head in HEADS for blank in BLANKS]
# What the readers of documents look out for.
SIGNS = (
    "[", "{", '"', "[[", '{"a":', '"\\\\', "a: b\\n", "From: a\\nTo: b\\n", "From: a\\n b", "a-b:", "\\n\\t",
    "<a@b", "=?utf-8?q?", "00:00:00.000 --> ", "00:00:00.000 --> 00:00:01.000\\n", "<v a", "<v.a", "</", "A a",
    "A: ", "[12:00] a", "12:00 <a", "a [12:00", "channel: ", "#a", "Participants: ", "Participants:\\n- a\\n",
    "Date: ", "- ", "by ", "url: http://", "def a(", "class ", "function ", "export ", "import {",
    "const a = (", "__all__ = [", "public static ", "(", "::", "//", "/*", "'", "=", "==\\n", "\\0", "\\xff",
    "\\u00e9", "1. ", "> ", "<div><p>", "<meta charset=", "<!DOCTYPE [",
)
TEXTS += [(sign * 200_000)[:200_000] + "x" for sign in SIGNS]


def tried(read, ending):
    try:
        read(text.encode(), Origin("x" + ending, ending.lstrip(".")))
    except Unreadable:
        pass


def outlined():
    # Longer lines are not looked at.
    lines = "\\n".join([text[:_LONGEST_LINE]] * 3)[:5_000]
    for language in sorted(set(BY_ENDING.values())):
        outline(lines, language)
"""


@pytest.mark.parametrize(
    "reading",
    [
        "as_memory(text[:20_000])",
        "as_name(text, 20_000)",
        "unlabelled(text[:20_000])",
        "title_of('x.md', text)",
        "cleaned({'results': [{'title': text, 'url': 'https://a.example/', 'content': text}]}, 10)",
        "failed_engines({'unresponsive_engines': [[text, text]]})",
        "sections(text)",
        "[decode(text.encode(encoding)) for encoding in ('utf-8', 'utf-16', 'utf-16-le', 'utf-32')]",
        "describe('x.md', text)",
        "chat('x.txt', text)",
        "outlined()",
        "tried(read_json, '.json')",
        "tried(read_json, '.jsonl')",
        "tried(read_transcript, '.vtt')",
        "tried(read_transcript, '.srt')",
        "tried(read_email, '.eml')",
        "tried(read_page, '.html')",
    ],
)
def test_reading_a_text_made_to_be_slow_ends(reading: str) -> None:
    code = f"{_PROLOGUE}\nfor text in TEXTS:\n    {reading}\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
