"""Reads chats: Slack's JSON export, and transcripts with a time and a name before each message."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from cragside.adapters.documents.reading import Composer, present

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
    """Whether a text is the transcript of a chat, and its channel, participants and first time."""
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
    """Whether this is Slack's export of a channel: a list of messages."""
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(item, Mapping) and item.get("type") == "message" and isinstance(item.get("ts"), str)
        for item in value
    )


def slack_export(messages: Sequence[Mapping[str, Any]], name: str) -> tuple[str, dict[str, Any]]:
    """The messages as lines with time and name, and tier 1. The channel is the name of the file's folder."""
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
