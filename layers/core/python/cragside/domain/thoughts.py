"""Finds what a model thought before it answered, where its host leaves that in the text."""

import re

_NAMES = r"(?:antml:|seed:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratch_?pad)"
# Qwen, DeepSeek, GLM, Seed and others; Mistral; Kimi; Skywork; Open WebUI's form of all of them.
_TAGS = {
    rf"<{_NAMES}>": rf"</{_NAMES}>",
    r"\[THINK\]": r"\[/THINK\]",
    r"◁think▷": r"◁/think▷",
    r"<\|begin_of_thought\|>": r"<\|end_of_thought\|>",
    # Open WebUI begins each line of thoughts with `>`, so a tag in them closes nothing.
    r"<details(?=[^>\n]{0,300}?\stype=.?reasoning\b)[^>\n]{0,400}>(?:\n(?:>|<summary>)[^\n]*+)*+": r"</details>",
}
_OPENINGS = "|".join(f"({opening})" for opening in _TAGS)
_CLOSINGS = [re.compile(closing, re.IGNORECASE) for closing in _TAGS.values()]
# In the middle of a line, an answer speaks about them.
_OPENED = re.compile(rf"^[ \t]*+(?:{_OPENINGS})", re.IGNORECASE | re.MULTILINE)
_NEXT = re.compile(rf"\s*+(?:{_OPENINGS})", re.IGNORECASE)
# A template that opens the thoughts in the prompt leaves their end alone.
_CLOSED = re.compile("|".join([*_TAGS.values()][:-1]), re.IGNORECASE)
_OPENING = re.compile(_OPENINGS, re.IGNORECASE)
# gpt-oss names the channel of each message.
_CHANNEL = re.compile(r"\s*+(?:<\|start\|>assistant)?<\|channel\|>")
_ANSWERS = re.compile(r"<\|channel\|>final[^<\n]{0,80}<\|message\|>")
_ANSWERED = re.compile(r"<\|(?:return|end|call)\|>")


def without_thoughts(text: str) -> str:
    """The answer without the thoughts ahead of it or between its paragraphs. Empty if it was cut off in the first."""
    if _CHANNEL.match(text):
        answer = _ANSWERS.search(text)
        return _ANSWERED.split(text[answer.end() :], maxsplit=1)[0] if answer else ""
    closed = _CLOSED.search(text)
    alone = closed and not _OPENING.search(text, 0, closed.start()) and not text.endswith("`", 0, closed.start())
    at = closed.end() if closed and alone else 0
    kept: list[str] = []
    while (opened := _NEXT.match(text, at) or _OPENED.search(text, at)) and opened.lastindex:
        ended = _CLOSINGS[opened.lastindex - 1].search(text, opened.end())
        if ended is None:
            # The first thoughts fill the rest. Later ones may be none.
            return "" if not "".join((*kept, text[at : opened.start()])).strip() else "".join((*kept, text[at:]))
        kept.append(text[at : opened.start()])
        at = ended.end()
    return "".join((*kept, text[at:])).lstrip("\r\n") if at else text
