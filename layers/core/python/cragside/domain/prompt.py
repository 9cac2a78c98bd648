"""The user's prompt inside a request: a `prompt` string, or chat `messages` in Ollama's or OpenAI's form."""

from collections.abc import Mapping, Sequence
from typing import Any

from cragside.domain.command import asks_why, question_of
from cragside.domain.errors import ValidationError

Request = Mapping[str, Any]


def user_text(request: Request) -> str | None:
    """The last text of the user, or None. Raises `ValidationError` for fields of a wrong type."""
    messages = request.get("messages")
    if messages is not None:
        index = last_user(_checked(messages))
        return None if index is None else text_of(messages[index].get("content"))
    prompt = request.get("prompt")
    if prompt is None or isinstance(prompt, str):
        return prompt
    raise ValidationError("prompt has to be a string.", field="prompt")


def question_in(request: Request, prefix: str) -> str | None:
    """The question after the command: "" for none, None if the request does not begin with the command."""
    text = user_text(request)
    return None if text is None else question_of(text, prefix)


def any_question_in(request: Request, prefix: str) -> str | None:
    """The question of a request with or without the command: "" for none, None without a text of the user."""
    text = user_text(request)
    if text is None:
        return None
    question = question_of(text, prefix)
    return text.strip() if question is None else question


def explained_question_in(request: Request, prefix: str) -> str:
    """The question of a request that is explained, with the command, with `/rag?` or without either.

    Raises `ValidationError` for a request without a text of the user.
    """
    text = user_text(request)
    if text is None:
        raise ValidationError("The request needs a prompt (string) or messages (list) with a question.", field="prompt")
    found = (asks_why(text, prefix), any_question_in(request, prefix))
    return next(question for question in found if question is not None)


def inject(request: Request, block: str, question: str) -> dict[str, Any]:
    """A copy of the request without the command and with the block. Other fields are unchanged.

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
    """The index of the last message of the user."""
    return next((i for i in range(len(messages) - 1, -1, -1) if messages[i].get("role") == "user"), None)


def text_of(content: Any) -> str | None:
    """The text of a message's content. Raises `ValidationError` for content of a wrong type."""
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
