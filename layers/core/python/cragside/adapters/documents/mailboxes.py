"""Reads mailboxes (mbox): each message is a section."""

import re
from collections.abc import Iterator

from cragside.adapters.documents.choosing import FROM_LINE
from cragside.adapters.documents.emails import Mail, parsed_message, title_of
from cragside.adapters.documents.reading import FileOrigin, Reading, Unreadable, label

# A message begins behind a blank line. Text that begins so is quoted with a >.
_BEGIN = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))" + FROM_LINE)
_QUOTED = re.compile(rb"(?m)^>(>{0,20}From )")
_MOST = 10_000


def read_mailbox(content: bytes, origin: FileOrigin) -> Reading:
    """The messages in their order. Raises `Unreadable` if there is none."""
    mail, read, failed = Mail(), 0, 0
    for number, message in enumerate(_messages(content), 1):
        if number > _MOST:
            mail.unread.append(f"the messages behind the first {_MOST:,} were not read")
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
