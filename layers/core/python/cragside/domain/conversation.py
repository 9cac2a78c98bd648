"""The turns of a conversation before its last question."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from cragside.domain.command import asks_why, question_of
from cragside.domain.neutral import neutralise
from cragside.domain.prompt import Request, last_user, text_of
from cragside.domain.quoting import behind_blocks

MOST_TURNS = 10
LONGEST_TURN = 500  # characters
# Messages of other roles lie between the turns; this many messages are looked at.
_MOST_MESSAGES = 50
# Longer texts are documents rather than questions. They are left out, so they cost nothing.
_LONGEST_READ = 40_000


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """What the user or the assistant said, shortened and without the command."""

    role: Literal["user", "assistant"]
    text: str


def earlier_turns(request: Request, prefix: str) -> tuple[ChatTurn, ...]:
    """The last turns before the question of a chat request, oldest first; () for a request without `messages`.

    Turns without text and turns of more than 40,000 characters are left out. So are other roles: evidence of earlier
    requests has the role `system`.
    """
    messages = request.get("messages")
    if not isinstance(messages, list):
        return ()
    asked = last_user(messages)
    if not asked:
        return ()
    before = (messages[index] for index in range(asked - 1, max(-1, asked - 1 - _MOST_MESSAGES), -1))
    turns = (turn for turn in (_turn(message, prefix) for message in before) if turn is not None)
    return tuple(reversed(tuple(islice(turns, MOST_TURNS))))


def _turn(message: Mapping[str, Any], prefix: str) -> ChatTurn | None:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant") or not isinstance(content, str | list):
        return None
    text = text_of(content) or ""
    if len(text) > _LONGEST_READ:
        return None
    if role == "user":
        text = behind_blocks(text)
        start = text[: 2 * LONGEST_TURN]
        commands = (question_of(start, prefix), asks_why(start, prefix))
        text = next((question for question in commands if question is not None), text)
    text = neutralise(text[:LONGEST_TURN]).strip()
    return ChatTurn(role, text) if text else None
