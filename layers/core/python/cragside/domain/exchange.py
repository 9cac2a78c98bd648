"""What of a conversation is worth remembering, and how it is written down and told again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cragside.domain.context import CountTokens, cut, neutralise
from cragside.domain.document import Document
from cragside.domain.errors import ValidationError

HEADING = "# Relevant Memory"
DEFAULT_LEAST = 50
LONGEST_TEXT = 256 * 1024  # characters of user or assistant

_ENGLISH = ("hi", "hello", "hey", "bye", "thanks", "thank you", "ok", "okay", "yes", "no")
_RUSSIAN = ("привет", "пока", "спасибо", "да", "нет")
_GREETINGS = frozenset({*_ENGLISH, *_RUSSIAN})
_TRAILING = "!?.,:;"
# What would open a section of the system prompt that memory is rendered into.
_SECTION = re.compile(r"^([ \t]*)(#+)", re.MULTILINE)
_LEAST_ROOM = 16  # tokens


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a user said and what the assistant answered. A time without a zone is taken for UTC."""

    user: str
    assistant: str
    skill: str = ""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def when(self) -> datetime:
        """Its time in UTC."""
        return self.at.replace(tzinfo=UTC) if self.at.tzinfo is None else self.at.astimezone(UTC)

    @property
    def name(self) -> str:
        """The name of its document; two exchanges of one second have the same."""
        return f"conv_{self.when:%Y%m%d_%H%M%S}.txt"

    @property
    def text(self) -> str:
        """Its document."""
        skill = " ".join(self.skill.split())
        lines = [f"Date: {self.when:%Y-%m-%d %H:%M}", *([f"Skill: {skill}"] if skill else [])]
        return "\n".join([*lines, f"User: {self.user.strip()}", f"Assistant: {self.assistant.strip()}"])


def refuse_overlong(exchange: Exchange) -> None:
    """Raises `ValidationError` when the user or the assistant said more than memory takes."""
    for field_name, text in (("user", exchange.user), ("assistant", exchange.assistant)):
        if len(text) > LONGEST_TEXT:
            raise ValidationError(
                f"{field_name} has {len(text)} characters; memory takes at most {LONGEST_TEXT}. Shorten it, or index "
                "it as a document.",
                field=field_name,
                limit=LONGEST_TEXT,
            )


def reason_to_forget(exchange: Exchange, least: int = DEFAULT_LEAST) -> str:
    """Why an exchange is not worth remembering: `blank_answer`, `too_short`, `greeting`; "" when it is.

    `least` is the fewest characters of user and assistant together.
    """
    if not exchange.assistant.strip():
        return "blank_answer"
    if exchange.user.strip().lower().rstrip(_TRAILING).strip() in _GREETINGS:
        return "greeting"
    if len(exchange.user) + len(exchange.assistant) < least:
        return "too_short"
    return ""


def recollect(documents: Sequence[Document], *, budget: int, count_tokens: CountTokens) -> str:
    """Memories as a section of a system prompt, most relevant first, in at most `budget` tokens; "" for none.

    They are untrusted: they can neither open another section nor smuggle a chat template's control tokens.
    """
    left = budget - count_tokens(HEADING)
    told: list[str] = []
    for document in documents:
        if left < _LEAST_ROOM:
            break
        memory, tokens = cut(_SECTION.sub(_levelled, neutralise(document.content).strip()), left - 2, count_tokens)
        if memory:
            told.append(memory)
            left -= tokens + 2
    return "\n".join([HEADING, "\n\n".join(told)]) if told else ""


def _levelled(marks: re.Match[str]) -> str:
    return f"{marks.group(1)}{'＃' * len(marks.group(2))}"
