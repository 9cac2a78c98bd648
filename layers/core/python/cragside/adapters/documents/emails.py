"""Reads e-mail: headers, text, forwarded messages, and attached files of the kinds that are read."""

import re
from email import message_from_bytes, message_from_string, policy
from email.message import EmailMessage
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.mail_parts import Attached, contents_of
from cragside.adapters.documents.reading import MAX_LISTED, Composer, FileOrigin, Reading, Unreadable, label, present
from cragside.domain.document import Mark

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_HEAD = re.compile(r"\s{0,5}(?:[A-Za-z][A-Za-z0-9-]{1,60}:[^\n]*+\n(?:[ \t]++\S[^\n]*+\n)*){2,200}(?:\s|\Z)")
_SENDER = re.compile(r"(?im)^from:[ \t]*+\S")
_OTHER = re.compile(r"(?im)^(?:to|subject|date|message-id):[ \t]*+\S")
_MESSAGE_ID = re.compile(r"<[^<>\s]{1,250}>")
DEEPEST = 5
_MOST_FILES = 200
_MOST_FILE_BYTES = 20 * 1024 * 1024
_HEAD_END = re.compile(rb"\r?\n\r?\n|\Z")
_WIDE = re.compile(rb"charset\s{0,5}=\s{0,5}[\"']?utf-?(?:16|32)(?:-?[lb]e)?[\"']?", re.IGNORECASE)
_MOST_HEADERS = 1000
# For these headers, the standard library's parser is slower than linear: seconds for 100 KB.
_LONGEST_HEADER = 32 * 1024
_LONGEST_IN_TEXT = 4096
_PARSED = re.compile(
    r"^(?:content-(?:type|disposition|transfer-encoding|id)|mime-version|from|to|cc|bcc|reply-to|sender|subject|date"
    r"|message-id|in-reply-to|references)[ \t]*+:[^\n]*+(?:\n[ \t][^\n]*+)*+",
    re.IGNORECASE | re.MULTILINE,
)


def read(content: bytes, origin: FileOrigin) -> Reading:
    """The headers and the text, and what is forwarded and attached. Raises `Unreadable` if there is nothing to read."""
    return reading_of(parsed_message(content), origin)


def reading_of(message: EmailMessage, origin: FileOrigin) -> Reading:
    """The reading of a message. Raises `Unreadable` if there is nothing to read."""
    mail = Mail()
    mail.add(message)
    composer = mail.composer
    return Reading(
        composer.text, "email", title_of(message), composer.marks, _tier1(message), unread="; ".join(mail.unread)
    )


def parsed_message(content: bytes) -> EmailMessage:
    """A message. Raises `Unreadable` if it has no headers, or too many or too long ones."""
    content = _in_ascii_or_utf8(content)
    if _longest_header("\n".join(content.decode("latin-1").splitlines())) > _LONGEST_HEADER:
        raise Unreadable(f"has a header of more than {_LONGEST_HEADER:,} bytes, which is the limit")
    message = message_from_bytes(content, policy=policy.default)
    if len(message.keys()) > _MOST_HEADERS:
        raise Unreadable(f"has more than {_MOST_HEADERS:,} headers, which is the limit")
    if not message.keys():
        raise Unreadable("has no headers, so it is not an e-mail: save it as .txt to index it as text")
    return message


def title_of(message: EmailMessage) -> str:
    """The subject of a message."""
    return _header(message, "Subject")


class Mail:
    """Composes the text of messages. What cannot be read is in `unread`."""

    def __init__(self) -> None:
        self.composer = Composer()
        self.unread: list[str] = []
        self._files, self._bytes = 0, 0

    def add(self, message: EmailMessage, section: str = "", depth: int = 0) -> None:
        """Append a message. Raises `Unreadable` if it has no text and nothing that is read."""
        composer, contents = self.composer, contents_of(message)
        for header in _SHOWN:
            if value := _header(message, header):
                composer.add(f"{header}: {value}", end="\n")
        composer.add("", end="\n")
        if not contents.found and not contents.forwarded:
            raise Unreadable("has neither a text nor an HTML part")
        if contents.binary and not (contents.texts or contents.forwarded):
            raise Unreadable("holds binary data where its text should be")
        for text in contents.texts:
            composer.extend(_below(text.marks, section), composer.length)
            composer.add(text.text)
        files = [(each, self._reading(each, depth)) for each in contents.attached]
        if left := [each.name for each, reading in files if reading is None]:
            composer.add(f"Attachments (not indexed): {', '.join(left[:MAX_LISTED])}")
            named = (
                f"attachment {left[0]} was" if len(left) == 1 else f"attachments {', '.join(left[:MAX_LISTED])} were"
            )
            self.unread.append(f"the {named} not read")
        for inner in contents.forwarded:
            self._forward(inner, section, depth)
        for each, reading in files:
            if reading is not None:
                self._attach(each, reading, section)

    def _forward(self, message: EmailMessage, section: str, depth: int) -> None:
        if depth == DEEPEST:
            self.unread.append(f"messages that are forwarded more than {DEEPEST} times were not read")
            return
        path = _path(section, label(title_of(message) or "Forwarded message", 120))
        self.composer.mark(section=path, apart=True)
        self.composer.add("Forwarded message:", end="\n")
        try:
            self.add(message, path, depth + 1)
        except Unreadable as error:
            self.unread.append(f"a forwarded message {error.reason}")

    def _attach(self, attached: Attached, reading: Reading, section: str) -> None:
        composer, path = self.composer, _path(section, attached.name)
        composer.mark(section=path, apart=True)
        composer.add(f"Attachment {attached.name}:", end="\n")
        composer.extend(_below(reading.marks, path), composer.length)
        composer.add(reading.text.strip("\n"))
        if reading.unread or reading.pictured:
            self.unread.append(f"of the attachment {attached.name}: {reading.unread or 'scanned pages were not read'}")

    def _reading(self, attached: Attached, depth: int) -> Reading | None:
        """The reading of a file in a message, None if it cannot be read within the limits."""
        from cragside.adapters.documents.choosing import kind_of
        from cragside.adapters.documents.kinds import PICTURE

        self._files += 1
        self._bytes += len(attached.content)
        if self._files > _MOST_FILES or self._bytes > _MOST_FILE_BYTES or depth == DEEPEST:
            return None
        try:
            kind, file_type = kind_of(attached.content, attached.name, attached.content_type)
            if kind is PICTURE:
                return None
            reading = kind.reader(attached.content, FileOrigin(attached.name, file_type))
        except Exception:  # as of a file of its own, a parser's fault is no fault of the message
            return None
        return reading if reading.text.strip() else None


def _path(section: str, name: str) -> str:
    return f"{section} > {name}" if section else name


def _below(marks: tuple[Mark, ...], section: str) -> tuple[Mark, ...]:
    """The marks of a part of a message. Its pages are no pages of the message."""
    return tuple(
        Mark(
            mark.start,
            section=" > ".join(filter(None, (section, f"page {mark.page}" if mark.page else "", mark.section))),
            apart=mark.apart,
        )
        for mark in marks
    )


def _in_ascii_or_utf8(content: bytes) -> bytes:
    """The message, with a head in UTF-8. Some programs save messages in UTF-16, or headers in a legacy encoding."""
    if content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) or b"\x00" in content[:200]:
        text = decode(content)
        content = _WIDE.sub(b"charset=utf-8", text.encode("utf-8", "replace")) if text is not None else content
    content = content.lstrip(b"\r\n")
    end = _HEAD_END.search(content)
    head = content[: end.start()] if end else content
    text = None if head.isascii() else decode(head)
    return content if text is None else text.encode("utf-8", "replace") + content[len(head) :]


def mail_facts(text: str) -> tuple[bool, dict[str, Any]]:
    """Whether a text begins with the headers of an e-mail, and its tier 1 annotations."""
    head = _HEAD.match(text[:20_000] + "\n")
    if head is None or not (_SENDER.search(head[0]) and _OTHER.search(head[0])):
        return False, {}
    if _longest_header(head[0]) > _LONGEST_IN_TEXT:
        return False, {}
    message = message_from_string(head[0].lstrip(), policy=policy.default)
    return True, _tier1(message)


def _longest_header(text: str) -> int:
    return max((len(header[0]) for header in _PARSED.finditer(text)), default=0)


def _tier1(message: Any) -> dict[str, Any]:
    identity = _MESSAGE_ID.search(_header(message, "Message-ID"))
    answered = _MESSAGE_ID.search(_header(message, "In-Reply-To"))
    fields = {
        "from": next(iter(_addresses(message, "From")), None),
        "to": _addresses(message, "To"),
        "cc": _addresses(message, "Cc"),
        "subject": _header(message, "Subject"),
        "date": _date(message),
        "messageId": identity[0] if identity else None,
        "inReplyTo": answered[0] if answered else None,
        "references": _MESSAGE_ID.findall(_raw(message, "References")),
    }
    return present(fields)


def _raw(message: Any, name: str) -> str:
    try:
        return str(message.get(name, ""))
    except (ValueError, LookupError, AttributeError, IndexError, TypeError, RecursionError):
        return ""  # the standard library cannot parse the header


def _header(message: Any, name: str) -> str:
    return label(_raw(message, name), 1000)


def _addresses(message: Any, name: str) -> list[str]:
    pairs = getaddresses([_raw(message, name)[:20_000]])[:MAX_LISTED]
    return [f"{person} <{address}>" if person else address for person, address in pairs if address]


def _date(message: Any) -> str | None:
    written = _raw(message, "Date")
    try:
        return parsedate_to_datetime(written).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return written
