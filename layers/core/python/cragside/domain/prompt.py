"""The prompt of a request, and the turns of the conversation before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from cragside.domain.context import behind_blocks
from cragside.domain.errors import ValidationError
from cragside.domain.neutral import neutralise
from cragside.domain.query import asks_why, question_of

Request = Mapping[str, Any]


def user_text(request: Request) -> str | None:
    """Return the last text of the user, or None. Raises `ValidationError` for fields of a wrong type."""
    messages = request.get("messages")
    if messages is not None:
        index = last_user(_checked(messages))
        return None if index is None else text_of(messages[index].get("content"))
    prompt = request.get("prompt")
    if prompt is None or isinstance(prompt, str):
        return prompt
    raise ValidationError("prompt has to be a string.", field="prompt")


def question_in(request: Request, prefix: str) -> str | None:
    """Return the question after the command: "" for none, None if the request does not begin with the command."""
    text = user_text(request)
    return None if text is None else question_of(text, prefix)


def any_question_in(request: Request, prefix: str) -> str | None:
    """Return the question of a request with or without the command: "" for none, None without a text of the user."""
    text = user_text(request)
    if text is None:
        return None
    question = question_of(text, prefix)
    return text.strip() if question is None else question


def explained_question_in(request: Request, prefix: str) -> str:
    """Return the question of a request that is explained, with the command, with `/rag?` or without either.

    Raises `ValidationError` for a request without a text of the user.
    """
    text = user_text(request)
    if text is None:
        raise ValidationError("The request needs a prompt (string) or messages (list) with a question.", field="prompt")
    found = (asks_why(text, prefix), any_question_in(request, prefix))
    return next(question for question in found if question is not None)


def inject(request: Request, block: str, question: str) -> dict[str, Any]:
    """Return a copy of the request without the command and with the block. Other fields are unchanged.

    In a `prompt`, the block precedes the question. In `messages`, it is a system message before the last user message.
    An empty block adds nothing.
    """
    if request.get("messages") is None:
        return {**request, "prompt": f"{block}\n\n{question}" if block else question}
    messages: Sequence[Mapping[str, Any]] = request["messages"]
    index = last_user(messages)
    if index is None:
        return dict(request)
    asked = {**messages[index], "content": _with_text(messages[index]["content"], question)}
    evidence = [{"role": "system", "content": block}] if block else []
    return {**request, "messages": [*messages[:index], *evidence, asked, *messages[index + 1 :]]}


def _checked(messages: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ValidationError("messages has to be a list of objects with role and content.", field="messages")
    return messages


def last_user(messages: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the index of the last message of the user."""
    return next((i for i in range(len(messages) - 1, -1, -1) if messages[i].get("role") == "user"), None)


def text_of(content: Any) -> str | None:
    """Return the text of a message's content. Raises `ValidationError` for content of a wrong type."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        part = _text_part(content)
        return None if part is None else str(content[part]["text"])
    raise ValidationError("content has to be a string or a list of parts.", field="messages")


def _text_part(parts: Sequence[Any]) -> int | None:
    return next(
        (i for i, part in enumerate(parts) if isinstance(part, dict) and isinstance(part.get("text"), str)), None
    )


def _with_text(content: Any, text: str) -> Any:
    if not isinstance(content, list):
        return text
    part = _text_part(content)
    return [{**piece, "text": text} if i == part else piece for i, piece in enumerate(content)]


MOST_TURNS = 10
LONGEST_TURN = 500  # characters
# Messages of other roles lie between the turns; this many messages are looked at.
_MOST_MESSAGES = 50
# Longer texts are documents rather than questions. They are left out, so they cost nothing.
_LONGEST_READ = 40_000


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A message of the user or the assistant, shortened and without the command."""

    role: Literal["user", "assistant"]
    text: str


def earlier_turns(request: Request, prefix: str) -> tuple[ChatTurn, ...]:
    """Return the last turns before the question of a chat request, oldest first; () for a request without `messages`.

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
