"""Reads e-mail: headers and text. Attachments are only named."""

import re
from email import message_from_bytes, message_from_string, policy
from email.message import EmailMessage
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

from cragside.adapters.documents.decoding import decode
from cragside.adapters.documents.reading import MAX_LISTED, Composer, FileOrigin, Reading, Unreadable, label, present
from cragside.domain.document import Mark

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_HEAD = re.compile(r"\s{0,5}(?:[A-Za-z][A-Za-z0-9-]{1,60}:[^\n]*+\n(?:[ \t]++\S[^\n]*+\n)*){2,200}(?:\s|\Z)")
_SENDER = re.compile(r"(?im)^from:[ \t]*+\S")
_OTHER = re.compile(r"(?im)^(?:to|subject|date|message-id):[ \t]*+\S")
_MESSAGE_ID = re.compile(r"<[^<>\s]{1,250}>")
_MOST_PARTS = 1000
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
    """The headers and the text part, or else the HTML part. Raises `Unreadable` if the message has neither."""
    if _longest_header("\n".join(content.decode("latin-1").splitlines())) > _LONGEST_HEADER:
        raise Unreadable(f"has a header of more than {_LONGEST_HEADER:,} bytes, which is the limit")
    message = message_from_bytes(content, policy=policy.default)
    if len(message.keys()) > _MOST_HEADERS:
        raise Unreadable(f"has more than {_MOST_HEADERS:,} headers, which is the limit")
    if not message.keys():
        raise Unreadable("has no headers, so it is not an e-mail: save it as .txt to index it as text")
    composer = Composer()
    for header in _SHOWN:
        if value := _header(message, header):
            composer.add(f"{header}: {value}", end="\n")
    composer.add("", end="\n")
    marks = _add_body(composer, message)
    if names := _attachments(message):
        composer.add(f"Attachments (not indexed): {', '.join(names)}")
    return Reading(composer.text, "email", _header(message, "Subject"), marks, _tier1(message))


def described(text: str) -> tuple[bool, dict[str, Any]]:
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


def _add_body(composer: Composer, message: EmailMessage) -> tuple[Mark, ...]:
    if sum(1 for _ in zip(message.walk(), range(_MOST_PARTS + 1), strict=False)) > _MOST_PARTS:
        raise Unreadable(f"has more than {_MOST_PARTS} parts, which is the limit")
    body = message.get_body(("plain", "html"))
    if body is None:
        raise Unreadable("has neither a text nor an HTML part")
    payload = body.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    charset = body.get_content_charset()
    if body.get_content_type() != "text/html":
        text = decode(content, charset)
        if text is None:
            raise Unreadable("holds binary data where its text should be")
        composer.add(text.strip())
        return ()
    from cragside.adapters.documents import html

    shift = len(composer.text)
    page = html.whole(html.tree_of(content, charset))
    composer.add(page.text.strip())
    return tuple(Mark(mark.start + shift, section=mark.section) for mark in page.marks)


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


def _attachments(message: EmailMessage) -> list[str]:
    names = (part.get_filename() for part in message.iter_attachments()) if message.is_multipart() else ()
    return [label(str(name), 120) for name in names if name][:MAX_LISTED]
