"""Removes symbol tables and debug information from shared objects of any architecture, with reproducible output.

`strip` of the binutils handles only its own architecture, is not installed everywhere, and its output varies.
"""

import struct
from typing import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian: x86_64 and arm64
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NULL, _RELA, _REL = 0, 4, 9
_ALLOCATED, _INFO_IS_SECTION = 0x2, 0x40


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def informs_of_section(self) -> bool:
        return bool(self.flags & _INFO_IS_SECTION) or self.kind in (_RELA, _REL)


def stripped(image: bytes) -> bytes:
    """The shared object with only what the loader reads.

    Other files than 64-bit little-endian ELF with a section table, and files that would not shrink, stay unchanged.
    """
    if not image.startswith(_MAGIC) or len(image) < _HEADER.size:
        return image
    header = list(_HEADER.unpack_from(image))
    segments, table, segment_count, count, names_index = header[5], header[6], header[10], header[12], header[13]
    if not table or not count or names_index >= count:
        return image
    end = max(_segment_end(image, segments + index * _SEGMENT.size) for index in range(segment_count))
    sections = [_Section(*_SECTION.unpack_from(image, table + index * _SECTION.size)) for index in range(count)]
    kept = [
        index
        for index, section in enumerate(sections)
        if section.kind == _NULL or section.flags & _ALLOCATED or index == names_index
    ]
    renumbered = {index: position for position, index in enumerate(kept)}
    if any(sections[index].link not in renumbered for index in kept):
        return image
    names = sections[names_index]
    body = _aligned(image[:end])
    tail = _aligned(image[names.offset : names.offset + names.size])
    sections[names_index] = names._replace(offset=len(body))
    header[6], header[12], header[13] = len(body) + len(tail), len(kept), renumbered[names_index]
    shrunk = _HEADER.pack(*header) + body[_HEADER.size :] + tail
    shrunk += b"".join(_SECTION.pack(*_relinked(sections[index], renumbered)) for index in kept)
    return shrunk if len(shrunk) < len(image) else image


def _segment_end(image: bytes, offset: int) -> int:
    _, _, start, _, _, size, _, _ = _SEGMENT.unpack_from(image, offset)
    return int(start + size)


def _relinked(section: _Section, renumbered: dict[int, int]) -> _Section:
    info = renumbered.get(section.info, 0) if section.informs_of_section else section.info
    return section._replace(link=renumbered[section.link], info=info)


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)
