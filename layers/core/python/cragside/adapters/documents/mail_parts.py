"""Finds what a message holds: its text as its reader sees it, forwarded messages, and attached files."""

import mimetypes
import re
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.reading import Reading, Unreadable, label

_DEEPEST = 50
_MOST_PARTS = 1000
_TEXTS = frozenset({"text/plain", "text/html", "text/enriched", "text/markdown"})
_REPORTS = frozenset({"message/delivery-status", "message/disposition-notification", "text/rfc822-headers"})
_MESSAGES = frozenset({"message/rfc822", "message/global"})
_CODED = frozenset({"base64", "quoted-printable"})
_WORD = re.compile(r"\w{2,40}|\d")
# Programs write addresses of links in one part only, or others in each.
_ADDRESS = re.compile(r"(?:https?://|www\.|mailto:)\S{1,2000}+", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"\d\w|\w\d")
# The HTML part has a few words more: "Unsubscribe".
_FEW = 0.15
# A plain part that is no longer and has other words is a stub: "Your mail program cannot show HTML."
_LONG = 40
_MOST = 0.5


@dataclass(frozen=True, slots=True)
class Attached:
    """A file in a message."""

    name: str
    content_type: str
    content: bytes


@dataclass(slots=True)
class MailContents:
    """Holds the contents of a message. `found` says that it has a part of text, even a blank one."""

    texts: list[Reading] = field(default_factory=list)
    forwarded: list[EmailMessage] = field(default_factory=list)
    attached: list[Attached] = field(default_factory=list)
    found: bool = False
    binary: bool = False

    def add(self, other: "MailContents") -> None:
        """Take over the contents of a part."""
        self.texts += other.texts
        self.forwarded += other.forwarded
        self.attached += other.attached
        self.found |= other.found
        self.binary |= other.binary


def contents_of(message: EmailMessage) -> MailContents:
    """Give the contents of a message. Raise `Unreadable` if it has too many parts."""
    if sum(1 for _ in zip(message.walk(), range(_MOST_PARTS + 1), strict=False)) > _MOST_PARTS:
        raise Unreadable(f"has more than {_MOST_PARTS} parts, which is the limit")
    return _contents(message, 0)


def _contents(part: Any, depth: int) -> MailContents:
    kind = part.get_content_type()
    if depth > _DEEPEST:
        return MailContents()
    if kind in _MESSAGES:
        return MailContents(forwarded=_forwarded(part))
    if part.is_multipart() and kind not in _REPORTS:
        parts = [_contents(each, depth + 1) for each in part.get_payload()]
        if kind == "multipart/alternative":
            return _chosen(parts, [each.get_content_type() for each in part.get_payload()])
        whole = MailContents()
        for each in parts:
            whole.add(each)
        return whole
    attached = part.get_content_disposition() == "attachment" or (part.get_filename() and kind not in _TEXTS)
    if (kind in _TEXTS or kind in _REPORTS) and not attached:
        return _read(part, kind)
    return MailContents(attached=_attached(part, kind))


def _chosen(parts: list[MailContents], kinds: list[str]) -> MailContents:
    """The plain text, or the richer form if that says more, or both if each does. All attached files are kept."""
    whole = MailContents()
    for each in parts:
        whole.add(MailContents([], each.forwarded, each.attached, each.found, each.binary))
    plain = next((each for each, kind in zip(parts, kinds, strict=True) if kind == "text/plain" and each.texts), None)
    rich = next((each for each in reversed(parts) if each.texts and each is not plain), None)
    if plain is None or rich is None:
        whole.texts = (plain or rich or MailContents()).texts
        return whole
    said, shown = _words(plain), _words(rich)
    if said and not _says_more(shown, said):
        whole.texts = plain.texts
    elif _says_otherwise(said, shown):
        whole.texts = plain.texts + rich.texts
    else:
        whole.texts = rich.texts
    return whole


def _says_more(shown: set[str], said: set[str]) -> bool:
    """Tell if the rich form has many words that the plain text lacks, or a number."""
    more = shown - said
    return len(more) > _FEW * len(shown) or any(map(_DIGIT.search, more))


def _says_otherwise(said: set[str], shown: set[str]) -> bool:
    """Tell if a plain text, which is no stub, has other words than the rich form, or a number."""
    more = said - shown
    # Plain texts number links: [1].
    return (len(said) > _LONG and len(more) > _MOST * len(said)) or any(map(_NUMBER.search, more))


def _words(contents: MailContents) -> set[str]:
    texts = (_ADDRESS.sub(" ", each.text) for each in contents.texts)
    return {word.strip("_").lower() for text in texts for word in _WORD.findall(text)}


def _read(part: Any, kind: str) -> MailContents:
    content, charset = _bytes(part), part.get_content_charset()
    if kind == "text/html":
        from cragside.adapters.documents import html

        try:
            page = html.whole(html.tree_of(content, charset))
        except Unreadable as error:
            return MailContents(found=True, binary=error.reason == html.BINARY)
        return MailContents([Reading(page.text.rstrip(), marks=page.marks)] if page.text.strip() else [], found=True)
    text = decode(content, charset)
    if text is None:
        return MailContents(found=True, binary=True)
    return MailContents([Reading(text.strip())] if text.strip() else [], found=True)


def _bytes(part: Any) -> bytes:
    payload = part.get_payload(decode=True)
    if isinstance(payload, bytes):
        return payload
    # Reports are parsed as groups of headers.
    return "\n".join(map(str, part.get_payload())).encode("utf-8", "replace") if part.is_multipart() else b""


def _forwarded(part: Any) -> list[EmailMessage]:
    inside = [each for each in part.get_payload() if isinstance(each, EmailMessage)] if part.is_multipart() else []
    coded = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    if coded not in _CODED or not inside:
        return inside
    # Programs encode the forwarded message although the standard forbids it. The parser has read the code as its text.
    inside[0]["Content-Transfer-Encoding"] = coded
    return [message_from_bytes(_bytes(inside[0]), policy=policy.default)]


def _attached(part: Any, kind: str) -> list[Attached]:
    given = part.get_filename()
    if kind.startswith("image/") and (not given or (part["Content-ID"] and part.get_content_disposition() == "inline")):
        return []  # a picture in the text
    name = label(str(given or f"attachment{mimetypes.guess_extension(kind) or ''}"), 120)
    return [Attached(name, kind, _bytes(part))]
