"""Reads messages of Outlook (MS-OXMSG) as the mails that they were. Runs in a child process."""

import mimetypes
import re
import struct
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import quote
from itertools import accumulate

from cragside.adapters.documents import rich_text
from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.emails import DEEPEST, parsed_message, reading_of
from cragside.adapters.documents.old_office import Storage, opened
from cragside.adapters.documents.reading import MAX_LISTED, FileOrigin, Reading, Unreadable, label
from cragside.adapters.documents.rich_text import code_page, unpacked

_DAMAGED = "is damaged, or no message of Outlook (.msg): save or export it as .eml"
_PROPERTIES = "__properties_version1.0"
# How long the head of this stream is in the file, in an embedded message, in an attachment or a recipient.
_OUTERMOST, _EMBEDDED, _PART = 32, 24, 8
_MOST_PROPERTY_BYTES = 64 * 1024
_MOST_ATTACHMENTS = 1001  # one more than a mail may have parts
_LONGEST_HEADER = 16 * 1024
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9.+_-]{1,100}/[A-Za-z0-9.+_-]{1,100}")
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_INTERNET_PAGE, _PAGE = 0x3FDE, 0x3FFD
_NAME, _SMTP, _ADDRESS, _RECEIVES = 0x3001, 0x39FE, 0x3003, 0x0C15


def read(content: bytes, origin: FileOrigin) -> Reading:
    """Return the text of a mail with the same content. Raises `Unreadable` for files that are no message."""
    return reading_of(_message(_Item(opened(content, _DAMAGED), _OUTERMOST), 0), origin)


class _Item:
    """A message, a recipient or an attachment: a folder with properties. Texts of 8 bits are in `encoding`."""

    def __init__(self, storage: Storage, head: int, encoding: str = "") -> None:
        listed = storage.stream(_PROPERTIES)
        if listed is None:
            raise Unreadable(_DAMAGED)
        self.storage = storage
        entries = listed[head : head + _MOST_PROPERTY_BYTES]
        self._fixed = dict(struct.iter_unpack("<I4x8s", entries[: len(entries) // 16 * 16]))
        self.encoding = code_page(self.number(_PAGE)) or encoding

    def number(self, name: int) -> int:
        return int.from_bytes(self._fixed.get(name << 16 | 0x0003, b"")[:4], "little")

    def time(self, name: int) -> datetime | None:
        ticks = int.from_bytes(self._fixed.get(name << 16 | 0x0040, b""), "little")
        with suppress(OverflowError):
            return _EPOCH + timedelta(microseconds=ticks // 10) if ticks else None
        return None

    def binary(self, name: int) -> bytes | None:
        return self.storage.stream(f"__substg1.0_{name:04X}0102")

    def text(self, name: int) -> str:
        wide = self.storage.stream(f"__substg1.0_{name:04X}001F")
        if wide is not None:
            return wide.decode("utf-16-le", "replace").replace("\x00", "")
        narrow = self.storage.stream(f"__substg1.0_{name:04X}001E") or b""
        return decode(narrow.replace(b"\x00", b""), self.encoding or None) or ""

    def line(self, *names: int) -> str:
        """Return the first of these texts that is not blank, in one line."""
        return next((text for name in names if (text := label(self.text(name), 1000))), "")


def _message(item: _Item, depth: int) -> EmailMessage:
    message = _headers(item)
    page = _body(message, item)
    for storage in item.storage.storages("__attach_version1.0_#")[:_MOST_ATTACHMENTS] if depth <= DEEPEST else ():
        _attach(message, _Item(storage, _PART, item.encoding), page, depth)
    return message


def _headers(item: _Item) -> EmailMessage:
    """Return a mail with the headers that it came with, and for those that are missing, with the properties."""
    message = EmailMessage()
    written = item.text(0x007D).strip()
    if written.startswith("Microsoft Mail Internet Headers"):
        written = written.partition("\n")[2]
    with suppress(Unreadable):
        message = parsed_message(written.encode())
        message.clear_content()
    if subject := item.line(0x0037):
        del message["Subject"]
        _set(message, "Subject", subject)
    to, cc = _recipients(item)
    _set(message, "From", _person(item.line(0x0042, 0x0C1A), item.line(0x5D02, 0x5D01, 0x0065, 0x0C1F)))
    _set(message, "To", to or ", ".join(map(_quoted, item.line(0x0E04).split(";"))))
    _set(message, "Cc", cc or ", ".join(map(_quoted, item.line(0x0E03).split(";"))))
    _set(message, "Date", item.time(0x0039) or item.time(0x0E06) or "")
    for header, name in (("Message-ID", 0x1035), ("In-Reply-To", 0x1042), ("References", 0x1039)):
        _set(message, header, item.line(name))
    return message


def _set(message: EmailMessage, header: str, value: str | datetime) -> None:
    if value and header not in message:
        with suppress(ValueError, LookupError, AttributeError, TypeError, RecursionError):
            message[header] = value


def _recipients(item: _Item) -> tuple[str, str]:
    """Return the recipients of To and of Cc as texts of headers."""
    kinds: dict[int, list[str]] = {}
    for storage in item.storage.storages("__recip_version1.0_#")[:MAX_LISTED]:
        one = _Item(storage, _PART, item.encoding)
        kinds.setdefault(one.number(_RECEIVES), []).append(_person(one.line(_NAME), one.line(_SMTP, _ADDRESS)))
    to, cc = (_joined(kinds.get(kind, ())) for kind in (1, 2))
    return to, cc


def _joined(people: Sequence[str]) -> str:
    lengths = accumulate(len(person) + 2 for person in people)
    return ", ".join(
        person for person, length in zip(people, lengths, strict=True) if person and length < _LONGEST_HEADER
    )


def _person(name: str, address: str) -> str:
    if "@" not in address:  # an entry of Exchange's directory
        return _quoted(name)
    return f"{_quoted(name)} <{address}>" if name and name != address else address


def _quoted(name: str) -> str:
    name = name.strip().strip("'")
    return f'"{quote(name)}"' if name and "@" not in name else name


def _body(message: EmailMessage, item: _Item) -> str:
    """Add the text and the page that say the same. The page is returned."""
    plain, page = item.text(0x1000), item.text(0x1013)
    charset = "utf-8" if page else code_page(item.number(_INTERNET_PAGE))
    coded = page.encode() or item.binary(0x1013) or b""
    if not plain.strip() and not coded.strip() and (packed := item.binary(0x1009)):
        plain = rich_text.read(unpacked(packed), FileOrigin("", "rtf")).text
    message.set_content(plain.encode(), "text", "plain", params={"charset": "utf-8"})
    if coded:
        message.add_alternative(coded, "text", "html", params={"charset": charset} if charset else None)
    return page or coded.decode("latin-1")


def _attach(message: EmailMessage, item: _Item, page: str, depth: int) -> None:
    name, content = item.line(0x3707, 0x3704, _NAME), item.binary(0x3701) or b""
    for inner in item.storage.storages("__substg1.0_3701000D")[:1]:
        # A drawing or a sheet in the text is such a folder too, but no message. It stays unread.
        with suppress(Unreadable):
            forwarded = _message(_Item(inner, _EMBEDDED, item.encoding), depth + 1)
            message.add_attachment(forwarded)
            return
    stated = item.line(0x370E) or mimetypes.guess_type(name)[0] or ""
    main, _, sub = stated.partition("/") if _MEDIA_TYPE.fullmatch(stated) else ("application", "", "octet-stream")
    if main == "multipart":  # a signed message as it came, with its text
        name = f"{name}.eml"
    if main in ("message", "multipart"):  # in a mail, these are parts
        main, sub = "application", "octet-stream"
    identity = item.line(0x3712)
    shown = main == "image" and identity and f"cid:{identity}" in page
    message.add_attachment(
        content,
        main,
        sub,
        disposition="inline" if shown else "attachment",
        filename=name or None,
        cid=f"<{identity}>" if shown else None,
    )
