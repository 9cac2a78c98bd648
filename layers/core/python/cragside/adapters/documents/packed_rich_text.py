"""Unpacks the rich text of Outlook's messages (MS-OXRTFCP)."""

import struct

from cragside.adapters.documents.reading import Unreadable

_PACKED, _PLAIN = b"LZFu", b"MELA"
_WINDOW = 4096
_LEAST_COPIED = 2
_MOST_BYTES = 20 * 1024 * 1024
# Text that each message is taken to begin with, so that it can be referred to.
_KNOWN = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor "
    rb"MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)


def unpacked(content: bytes) -> bytes:
    """The rich text. Raises `Unreadable` if it is damaged or too long."""
    try:
        _, size, form = struct.unpack_from("<II4s", content)
    except struct.error:
        raise Unreadable("has a damaged text") from None
    if size > _MOST_BYTES:
        raise Unreadable(f"has a text of more than {_MOST_BYTES:,} bytes, which is the limit")
    if form == _PLAIN:
        return content[16 : 16 + size]
    if form != _PACKED:
        raise Unreadable("has a damaged text")
    # Places count from the beginning of the known text, and 4,096 of them are in reach.
    out, at, end = bytearray(_KNOWN), 16, len(_KNOWN) + size
    while at < len(content) and len(out) < end:
        flags, at = content[at], at + 1
        for bit in range(8):
            if at >= len(content) or len(out) >= end:
                break
            if not flags >> bit & 1:
                out.append(content[at])
                at += 1
                continue
            place = int.from_bytes(content[at : at + 2], "big")
            at += 2
            back = (len(out) - (place >> 4)) % _WINDOW
            if not back:  # a reference to the next place ends the text
                return bytes(out[len(_KNOWN) :])
            if back > len(out):
                raise Unreadable("has a damaged text")
            for _ in range((place & 0xF) + _LEAST_COPIED):
                out.append(out[-back])
    return bytes(out[len(_KNOWN) : end])
