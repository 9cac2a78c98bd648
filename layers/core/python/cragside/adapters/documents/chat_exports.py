"""Reads exports of chats with models: ChatGPT, Claude, Open WebUI and others that list messages with roles."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cragside.adapters.documents.reading import Composer, Reading, label
from cragside.domain.exchange import without_thoughts

_MOST_STEPS = 100_000
_SPOKEN = frozenset({"user", "assistant", "human", "model", "bot"})
_QUESTION, _ANSWER = "\n### USER\n", "\n### ASSISTANT\n"
_ASKING = frozenset({"user", "human"})
_THOUGHT = frozenset({"thoughts", "reasoning_recap", "thinking", "reasoning"})


@dataclass(frozen=True, slots=True)
class _Conversation:
    title: str
    date: str
    messages: Sequence[Mapping[str, Any]]


def exported(value: Any) -> Reading | None:
    """The conversations as "who: what", each a section with its title; None if the value is no export of chats."""
    items = value if isinstance(value, list) else [value]
    found = [_conversation(item) for item in items] if items else []
    if not found or not all(found):
        return None
    composer = Composer()
    for conversation in filter(None, found):
        spoken = [(who, what) for who, what in map(_said, conversation.messages) if what]
        if not spoken:
            continue
        composer.mark(section=label(conversation.title, 120), apart=True)
        composer.add(" – ".join(filter(None, (label(conversation.title), conversation.date))) or "Conversation")
        for who, what in spoken:
            composer.add(f"{who}: {what}")
    title = found[0].title if len(found) == 1 and found[0] else ""
    return Reading(composer.text, "text", title, composer.marks) if composer.text else None


def as_spoken(text: str) -> str:
    """A text without what models thought, if it is Open WebUI's export of a chat as text."""
    if not f"\n{text}".startswith(_QUESTION):
        return text
    turns = text.split(_ANSWER)
    return turns[0] + "".join(_ANSWER + without_thoughts(answer) + rest for answer, rest in map(_parted, turns[1:]))


def _parted(turn: str) -> tuple[str, str]:
    """An answer, and what is said from the next question on."""
    answer, asked, rest = turn.partition(_QUESTION)
    return answer, asked + rest


def _conversation(item: Any) -> _Conversation | None:
    if not isinstance(item, Mapping):
        return None
    inner = item.get("chat")
    chat: Mapping[str, Any] = inner if isinstance(inner, Mapping) else item
    title = next((name for name in map(item.get, ("title", "name")) if isinstance(name, str)), "")
    history = chat.get("history")
    if isinstance(chat.get("mapping"), Mapping):
        messages = _thread(chat["mapping"], chat.get("current_node"), "parent")
        messages = [node["message"] for node in messages if isinstance(node.get("message"), Mapping)]
    elif isinstance(history, Mapping) and isinstance(history.get("messages"), Mapping):
        messages = _thread(history["messages"], history.get("currentId"), "parentId")
    else:
        messages = next((each for each in map(chat.get, ("chat_messages", "messages")) if isinstance(each, list)), [])
        if not messages or not all(isinstance(each, Mapping) and _role(each) for each in messages):
            return None
        if not any(_role(each).lower() in _SPOKEN for each in messages):
            return None
    stamp = next((item[name] for name in ("create_time", "created_at", "createdAt", "timestamp") if item.get(name)), "")
    return _Conversation(title, _day(stamp), messages)


def _thread(nodes: Mapping[str, Any], last: Any, parent: str) -> list[Mapping[str, Any]]:
    """The messages from the first to the last shown one. Other answers to the same question are left out."""
    thread = list[Mapping[str, Any]]()
    seen = set[str]()
    while isinstance(last, str) and last not in seen and len(seen) < _MOST_STEPS:
        seen.add(last)
        node = nodes.get(last)
        if not isinstance(node, Mapping):
            break
        thread.append(node)
        last = node.get(parent)
    return thread[::-1] or [node for node in nodes.values() if isinstance(node, Mapping)]


def _role(message: Mapping[str, Any]) -> str:
    author = message.get("author")
    named = (author.get("role") if isinstance(author, Mapping) else author, message.get("role"), message.get("sender"))
    return next((name for name in named if isinstance(name, str) and name), "")


def _said(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the speaker and the words; "" for words of systems and tools, and for hidden ones."""
    role, metadata = _role(message), message.get("metadata")
    hidden = isinstance(metadata, Mapping) and metadata.get("is_visually_hidden_from_conversation")
    if hidden or (role.lower() in ("system", "tool", "developer", "function")):
        return role, ""
    content = message.get("content") or message.get("text")
    said = "\n".join(_texts(content, 0))
    if role.lower() not in _ASKING:
        said = without_thoughts(said)
    return (role.lower() if role.lower() in _SPOKEN else label(role, 80)), "\n".join((said, *_files(message))).strip()


def _texts(content: Any, depth: int) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list) and depth < 5:
        for part in content:
            yield from _texts(part, depth + 1)
    elif isinstance(content, Mapping) and depth < 5:
        if content.get("content_type", content.get("type", "text")) in _THOUGHT:
            return
        yield from _texts(content.get("parts") or content.get("text"), depth + 1)


def _files(message: Mapping[str, Any]) -> Iterator[str]:
    files = message.get("attachments")
    for file in files if isinstance(files, list) else []:
        if isinstance(file, Mapping) and isinstance(file.get("extracted_content"), str):
            yield f"[file: {label(str(file.get('file_name', '')), 120)}]\n{file['extracted_content']}"


def _day(stamp: Any) -> str:
    try:
        if isinstance(stamp, str):
            return datetime.fromisoformat(stamp).date().isoformat()
        seconds = float(stamp)
        return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC).date().isoformat()
    except (ValueError, TypeError, OverflowError, OSError):
        return ""
