"""Reads e-mail and mailboxes: headers, text, forwarded messages, and attached files of the kinds that are read."""

import mimetypes
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, message_from_string, policy
from email.message import EmailMessage
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.kinds import FROM_LINE
from cragside.adapters.documents.reading import MAX_LISTED, Composer, FileOrigin, Reading, Unreadable, label, present
from cragside.domain.document import Mark

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
    """Holds the contents of a message. `found` is set if it has a part of text, even a blank one."""

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
    """Return the plain text, or the richer form if that says more, or both if each does.

    All attached files are kept.
    """
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
    """Tell if a plain text has words or numbers that the rich form lacks, and is more than a stub."""
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
    """Return the headers and the text, and what is forwarded and attached.

    Raises `Unreadable` if there is nothing to read.
    """
    return reading_of(parsed_message(content), origin)


def reading_of(message: EmailMessage, origin: FileOrigin) -> Reading:
    """Return the reading of a message. Raises `Unreadable` if there is nothing to read."""
    mail = Mail()
    mail.add(message)
    composer = mail.composer
    return Reading(
        composer.text, "email", title_of(message), composer.marks, _tier1(message), unread="; ".join(mail.unread)
    )


def parsed_message(content: bytes) -> EmailMessage:
    """Return a message. Raises `Unreadable` if it has no headers, or too many or too long ones."""
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
    """Return the subject of a message."""
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
        """Return the reading of a file in a message, None if it cannot be read within the limits."""
        from cragside.adapters.documents.kinds import PICTURE, kind_of

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
    """Return the marks of a part of a message. Its pages are no pages of the message."""
    return tuple(
        Mark(
            mark.start,
            section=" > ".join(filter(None, (section, f"page {mark.page}" if mark.page else "", mark.section))),
            apart=mark.apart,
        )
        for mark in marks
    )


def _in_ascii_or_utf8(content: bytes) -> bytes:
    """Return the message, with a head in UTF-8.

    Some programs save messages in UTF-16, or headers in a legacy encoding.
    """
    if content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) or b"\x00" in content[:200]:
        text = decode(content)
        content = _WIDE.sub(b"charset=utf-8", text.encode("utf-8", "replace")) if text is not None else content
    content = content.lstrip(b"\r\n")
    end = _HEAD_END.search(content)
    head = content[: end.start()] if end else content
    text = None if head.isascii() else decode(head)
    return content if text is None else text.encode("utf-8", "replace") + content[len(head) :]


def mail_facts(text: str) -> tuple[bool, dict[str, Any]]:
    """Tell if a text begins with the headers of an e-mail, and return its tier 1 annotations."""
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


# A message begins behind a blank line. Text that begins so is quoted with a >.
_BEGIN = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))" + FROM_LINE)
_QUOTED = re.compile(rb"(?m)^>(>{0,20}From )")
_MOST_MESSAGES = 10_000


def read_mailbox(content: bytes, origin: FileOrigin) -> Reading:
    """Return the messages in their order. Raises `Unreadable` if there is none."""
    mail, read, failed = Mail(), 0, 0
    for number, message in enumerate(_messages(content), 1):
        if number > _MOST_MESSAGES:
            mail.unread.append(f"the messages behind the first {_MOST_MESSAGES:,} were not read")
            break
        try:
            one = parsed_message(_QUOTED.sub(rb"\1", message))
            section = label(title_of(one), 120) or f"Message {number}"
            mail.composer.mark(section=section, apart=True)
            mail.add(one, section)
            read += 1
        except Unreadable:
            failed += 1
    if not read:
        raise Unreadable("holds no message that can be read")
    if failed:
        mail.unread.insert(0, f"{failed} of {read + failed} messages could not be read")
    return Reading(mail.composer.text, "email", marks=mail.composer.marks, unread="; ".join(mail.unread))


def _messages(content: bytes) -> Iterator[bytes]:
    start = None
    for begin in _BEGIN.finditer(content):
        if start is not None:
            yield content[start : begin.start()]
        start = begin.end()
    if start is not None:
        yield content[start:]
