"""Reads what programs export as JSON: chats of Slack and with models, and documents."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from cragside.adapters.documents.reading import Composer, Reading, label, present
from cragside.domain.exchange import without_thoughts

_HEAD = 20_000
_TIME = r"(?:\d{1,4}[-./]\d{1,2}[-./]\d{1,4},?[ T])?\d{1,2}:\d{2}(?::\d{2})?(?:\s?[AaPp]\.?[Mm]\.?)?"
# [10:32] ada: hello · [2024-01-05 10:32 AM] ada: hello · 05/01/24, 10:32 - Ada: hello
_MESSAGE = re.compile(rf"\[?({_TIME})(?:\]| -|:)? {{0,2}}[<@]{{0,2}}([^\s:<>\[\]][^:<>\n\[\]]{{0,60}})>?: \S")
_HEADED = re.compile(rf"(\S[^\n:]{{0,60}}?)\s{{1,3}}\[?({_TIME})\]?$")
_CHANNEL = re.compile(r"(?im)^(?:channel|kanal):?\s{0,3}#?([\w.-]{1,80})|^#([a-z0-9][\w.-]{0,79})$")
_MENTION = re.compile(r"<@([A-Z0-9]{1,30})(?:\|([^>\n]{1,80}))?>")
_LINK = re.compile(r"<((?:https?|mailto):[^|<>\n]{1,2000}+)(?:\|([^<>\n]{1,500}+))?>")
_LEAST_MESSAGES = 3


def chat_facts(name: str, text: str) -> tuple[bool, dict[str, Any]]:
    """Tell if a text is the transcript of a chat, and return its channel, participants and first time."""
    lines = [line for line in text[:_HEAD].split("\n") if line.strip()]
    inline = [match for line in lines if (match := _MESSAGE.match(line))]
    headed = [match for line in lines if (match := _HEADED.match(line))]
    chat = len(inline) >= max(_LEAST_MESSAGES, 0.5 * len(lines))
    chat = chat or len(headed) >= max(_LEAST_MESSAGES, 0.25 * len(lines))
    spoken = [(match[2], match[1]) for match in inline] or [(match[1], match[2]) for match in headed]
    channel = _CHANNEL.search(text[:_HEAD])
    fields = {
        "channel": (channel[1] or channel[2]) if channel else None,
        "participants": [person.strip() for person, _ in spoken] if chat else [],
        "timestamp": spoken[0][1] if chat else None,
    }
    return chat, present(fields)


def is_slack_export(value: object) -> bool:
    """Tell if this is Slack's export of a channel: a list of messages."""
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(item, Mapping) and item.get("type") == "message" and isinstance(item.get("ts"), str)
        for item in value
    )


def slack_export(messages: Sequence[Mapping[str, Any]], name: str) -> tuple[str, dict[str, Any]]:
    """Return the messages as lines with time and name, and tier 1. The channel is the name of the file's folder."""
    people = {str(message.get("user")): _speaker(message) for message in messages}
    composer = Composer()
    for message in messages:
        if text := _text(message, people):
            composer.add(f"[{_time(message['ts'], ' ')}] {_speaker(message)}: {text}", end="\n")
    threads = {str(message["thread_ts"]) for message in messages if message.get("thread_ts")}
    folder = PurePath(name).parent.name
    fields = {
        "channel": folder if folder not in ("", ".", "/") else None,
        "threadId": threads.pop() if len(threads) == 1 else None,
        "participants": [_speaker(message) for message in messages],
        "timestamp": _time(messages[0]["ts"], "T"),
    }
    return composer.text, present(fields)


def _text(message: Mapping[str, Any], people: Mapping[str, str]) -> str:
    text = message.get("text")
    text = text if isinstance(text, str) else ""
    text = _MENTION.sub(lambda mention: f"@{mention[2] or people.get(mention[1], mention[1])}", text)
    text = _LINK.sub(lambda link: f"{link[2]} ({link[1]})" if link[2] else link[1], text)
    files = message.get("files")
    names = [str(file.get("name")) for file in files if isinstance(file, Mapping)] if isinstance(files, list) else []
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return " ".join([text, *(f"[file: {name}]" for name in names)]).strip()


def _speaker(message: Mapping[str, Any]) -> str:
    profile = message.get("user_profile")
    profile = profile if isinstance(profile, Mapping) else {}
    named = (profile.get("display_name"), profile.get("real_name"), message.get("username"), message.get("user"))
    return next((name for name in named if isinstance(name, str) and name), "unknown")


def _time(stamp: str, separator: str) -> str:
    try:
        return datetime.fromtimestamp(float(stamp), UTC).isoformat(separator, "seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return stamp[:40]


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


def conversation_export(value: Any) -> Reading | None:
    """Return the conversations as "who: what", each a section with its title.

    None if the value is no export of chats.
    """
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
    """Remove what models thought from a text, if it is Open WebUI's export of a chat as text."""
    if not f"\n{text}".startswith(_QUESTION):
        return text
    turns = text.split(_ANSWER)
    return turns[0] + "".join(_ANSWER + without_thoughts(answer) + rest for answer, rest in map(_parted, turns[1:]))


def _parted(turn: str) -> tuple[str, str]:
    """Split an answer from what is said from the next question on."""
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
    """Return the messages from the first to the last shown one. Other answers to the same question are left out."""
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


_CONTENTS = ("pageContent", "page_content")
_UNKNOWN = frozenset({"", "unknown", "no description found.", "no author found."})
# AnythingLLM writes this before each chunk.
_PREFIX = re.compile(r"\A\s*+<document_metadata>.{0,5000}?</document_metadata>\s*+", re.DOTALL)


def document_export(value: Any) -> Reading | None:
    """Return the text of the documents.

    None if the value holds none. With several, each is a section with its title.
    """
    items = value if isinstance(value, list) else [value]
    if items and all(_content(item) is not None for item in items):
        return _documents(items)
    chunks = list(_chunks(value))
    return _cached(chunks) if chunks else None


def _documents(items: list[Mapping[str, Any]]) -> Reading:
    composer = Composer()
    for item in items:
        if len(items) > 1:
            composer.mark(section=label(_named(item, "title", "source"), 120), apart=True)
        composer.add((_content(item) or "").strip())
    if len(items) > 1:
        return Reading(composer.text, marks=composer.marks)
    item = items[0]
    said = {
        "author": _named(item, "docAuthor", "author"),
        "published": _named(item, "published"),
        "source": _named(item, "chunkSource", "docSource", "url", "source"),
    }
    return Reading(
        composer.text, title=_named(item, "title"), properties={name: is_ for name, is_ in said.items() if is_}
    )


def _content(item: Any) -> str | None:
    if not isinstance(item, Mapping):
        return None
    return next((item[name] for name in _CONTENTS if isinstance(item.get(name), str)), None)


def _named(item: Mapping[str, Any], *names: str) -> str:
    metadata = item.get("metadata")
    for facts in (item, metadata if isinstance(metadata, Mapping) else {}):
        for name in names:
            value = facts.get(name)
            if isinstance(value, str) and value.strip().lower() not in _UNKNOWN:
                return label(value)
    return ""


def _chunks(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the chunks of a vector cache, which is a list of lists of chunks with vectors.

    None if it is anything else.
    """
    groups = value if isinstance(value, list) else []
    flat = [chunk for group in groups for chunk in (group if isinstance(group, list) else [group])]
    if all(
        isinstance(chunk, Mapping)
        and isinstance(chunk.get("values"), list)
        and isinstance(chunk.get("metadata"), Mapping)
        and isinstance(chunk["metadata"].get("text"), str)
        for chunk in flat
    ):
        yield from flat


def _cached(chunks: list[Mapping[str, Any]]) -> Reading:
    composer = Composer()
    for chunk in chunks:
        composer.add(_PREFIX.sub("", chunk["metadata"]["text"]).strip())
    return Reading(composer.text, title=_named(chunks[0], "title"))
