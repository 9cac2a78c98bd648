"""Where a person typed: behind the templates of hosts, and never in a document that a host put beside it.

A document may forge a template's headings and tags. So a template counts only if its marks occur exactly as often as
the host writes them; otherwise nobody can tell who wrote what, and nothing counts as typed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Open WebUI puts its template for files and knowledge before what was typed. Up to version 0.6 the template also ends
# with what was typed.
_OPEN_WEBUI = "### Task:\nRespond to the user query using the provided context"
_CONTEXT, _CONTEXT_END = "<context>\n", "</context>"
_QUERY, _QUERY_END = "<user_query>\n", "\n</user_query>\n"
# The turns of LiteLLM's `ollama/` template.
_LITELLM = re.compile(r"\s*### (?:User|System):\n")
_TURN = re.compile(r"^[ \t]*#{1,6}[ \t]*(user|system|assistant)[ \t]*:[ \t]*\n?", re.IGNORECASE | re.MULTILINE)
# The beginnings of LangChain's templates with `Question: `, and the labels behind the question that a text may follow.
# Behind any other label there is nothing, or the question is a document's and the host's own has another label.
_LANGCHAIN: dict[str, tuple[str, ...]] = {
    "Question:": ("Helpful Answer:", "Answer:", "Context:", "Thought:"),
    "Answer the question based only on the following context:": (),
    "Use the following pieces of context to answer": (),
    "You are an assistant for question-answering tasks.": ("Context:",),
}
_QUESTION = re.compile(r"^[ \t]*question[ \t]*:[ \t]*", re.IGNORECASE | re.MULTILINE)
_LABEL = re.compile(r"^[ \t]*([A-Za-z][A-Za-z ]{0,30}:)(?=\s|\Z)", re.MULTILINE)
_CONTEXT_LABEL = re.compile(r"^[ \t]*context[ \t]*:", re.IGNORECASE | re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
# Open WebUI begins its own requests in the user's name with these texts: tasks (titles, tags, follow-up questions,
# search queries, completions), an emoji for a message, one answer from several models' answers.
_HOSTS_OWN = (
    "### Task:",
    "Your task is to reflect the speaker's likely facial expression",
    "You have been provided with a set of responses from various models to the latest user query",
)
# A part that a host wrote is in a tag: `<system-reminder>`, `<file name="...">`.
_TAGGED = re.compile(r"\s*<[A-Za-z][\w.:-]{0,60}[\s>/]")
_TEXT_PARTS = (None, "text", "input_text")


@dataclass(frozen=True, slots=True)
class Typed:
    """What a person typed. `frame` is what the host wrote around it, in pieces: it may repeat what was typed."""

    text: str
    frame: tuple[str, ...] = ("", "")

    def with_text(self, text: str, last: str | None = None) -> str:
        """The whole with another text in the frame. `last` is for the last place alone, by default it is `text`."""
        *before, behind = self.frame
        return text.join(before) + (text if last is None else last) + behind


def typed_in(text: str, *, prompt: bool = False) -> Typed | None:
    """What a person typed, None if a host wrote all of it or if that cannot be told.

    `prompt`: the text is a whole prompt rather than a message, so it may have turns.
    """
    start = text.lstrip()
    if start.startswith(_OPEN_WEBUI):
        return _behind_context(text)
    if start.startswith(_HOSTS_OWN):
        return None
    if prompt and _LITELLM.match(text):
        return _only_turn(text)
    for opening, followed in _LANGCHAIN.items():
        if start.startswith(opening):
            return _only_question(text, followed)
    return Typed(text)


def typed_part(parts: Sequence[Any]) -> int | None:
    """The index of the part that a person typed: the last text that is not in a tag."""
    return next((i for i in reversed(text_parts(parts)) if not _TAGGED.match(parts[i]["text"])), None)


def text_parts(parts: Sequence[Any]) -> list[int]:
    """The indices of the parts with text."""
    return [
        i
        for i, part in enumerate(parts)
        if isinstance(part, dict) and part.get("type") in _TEXT_PARTS and isinstance(part.get("text"), str)
    ]


def _behind_context(text: str) -> Typed | None:
    before, end, behind = text.partition(_CONTEXT_END)
    if not end or _CONTEXT_END in behind or text.count(_CONTEXT) != 1 or _CONTEXT not in before:
        return None
    if not behind.lstrip().startswith(_QUERY):
        return _framed(text, len(before) + len(end), len(text)) if behind.startswith("\n\n") else None
    opening = behind.index(_QUERY) + len(_QUERY)
    between = f"{_QUERY_END}\n"
    twice = behind[opening:]
    half = (len(twice) - len(between)) // 2
    typed = twice[: max(half, 0)]
    if not typed.strip() or twice != f"{typed}{between}{typed}":
        return None
    return Typed(typed, (before + end + behind[:opening], between, ""))


def _only_turn(text: str) -> Typed | None:
    """The user's only turn. LiteLLM writes the system's before it, and no document can add one unseen."""
    turns = list(_TURN.finditer(text))
    if [turn[1] for turn in turns] not in (["User"], ["System", "User"]):
        return None
    return _framed(text, turns[-1].end(), len(text))


def _only_question(text: str, followed: tuple[str, ...]) -> Typed | None:
    """The template's only question, unless it may be a document's: documents stand before it, and labels behind."""
    questions = list(_QUESTION.finditer(text))
    if len(questions) != 1:
        return None
    start = questions[0].end()
    first = not text[: questions[0].start()].strip()
    label = _label(text, start, followed, first=first)
    end = len(text) if label is None else label.start()
    documents = label is not None and _are_documents_before(text, label, followed)
    if documents or (not first and _PARAGRAPH.search(text[start:end].strip())):
        return None
    return _framed(text, start, end)


def _are_documents_before(text: str, label: re.Match[str], followed: tuple[str, ...]) -> bool:
    if label[1] not in followed:
        return bool(text[label.end() :].strip())
    return label[1] == "Context:" and _CONTEXT_LABEL.search(text, 0, label.start()) is not None


def _label(text: str, start: int, followed: tuple[str, ...], *, first: bool) -> re.Match[str] | None:
    """The label behind a question. Behind one that begins the text no document stands, and only known labels count."""
    labels = _LABEL.finditer(text, start)
    return next((label for label in labels if not first or label[1] in followed), None)


def _framed(text: str, start: int, end: int) -> Typed | None:
    """The text from `start` to `end`, without the blanks around it."""
    typed = text[start:end]
    inner = typed.strip()
    if not inner:
        return None
    start += len(typed) - len(typed.lstrip())
    return Typed(inner, (text[:start], text[start + len(inner) :]))
