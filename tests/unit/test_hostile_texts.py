"""Texts made to keep a regular expression busy: in a process of their own, which is ended when it hangs."""

import subprocess
import sys

import pytest

_PROLOGUE = """
from cragside.adapters.documents.chats import described as chat
from cragside.adapters.documents.describing import describe
from cragside.adapters.documents.languages import BY_ENDING
from cragside.adapters.documents.markdown import sections, title_of
from cragside.adapters.documents.structured import read as read_json
from cragside.adapters.documents.transcripts import read as read_transcript
from cragside.adapters.documents.reading import Origin, Unreadable
from cragside.adapters.searxng.results import cleaned, failed_engines
from cragside.domain.context import neutralise

PIECES = (
    "<!--", "<!-- -", "<!--x", "<script", "<script>", "</script ", "<a ", "<a", "<", "< ", "</ ", "</", "<|", "<｜",
    "<evidence", "<evidence ", "</evidence", "<evidence/", "<\\n", "[INST", "[/", "&#9", "&", "\\u200b<", "# ", "#",
    " #", "#\\n",
    "\\n# ", "\\n#\\t \\t#", "```", "```\\n", "\\n~~~", "---\\n", "---\\n\\n", "\\n---", "x #", " ", "\\t", "\\n",
)
HEADS = ("", "<", "</", "< /", "<evidence", "</script", "<script>", "# ", "# x", "# x #", "#\\t#")
HEADS += ("---\\n", "```\\n", "&#")
BLANKS = (" ", "\\t", "\\n", "#", " #", "9")
TEXTS = [(piece * 200_000)[:200_000] + "x" for piece in PIECES]
TEXTS += [head + (blank * 200_000)[:200_000] + "x" for head in HEADS for blank in BLANKS]
"""


@pytest.mark.parametrize(
    "reading",
    [
        "neutralise(text)",
        "title_of('x.md', text)",
        "cleaned({'results': [{'title': text, 'url': 'https://a.example/', 'content': text}]}, 10)",
        "failed_engines({'unresponsive_engines': [[text, text]]})",
    ],
)
def test_reading_a_text_made_to_be_slow_ends(reading: str) -> None:
    code = f"{_PROLOGUE}\nfor text in TEXTS:\n    {reading}\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stderr) == (0, "")
