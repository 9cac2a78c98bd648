"""Office files of 1997 to 2003, made of their records."""

import struct

SECTOR = 512
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
# Shorter streams would stand in another stream.
LEAST = 4096


def compound_of(streams):
    """A compound file (MS-CFB) with these streams in its root."""
    padded = {
        name: streams[name].ljust(-(-max(len(streams[name]), LEAST) // SECTOR) * SECTOR, b"\0")
        for name in sorted(streams, key=lambda name: (len(name), name.upper()))
    }
    # Sector 0 is the table of sectors, then come the folder's and those of the streams.
    folder_sectors = -(-(len(padded) + 1) // 4)
    table, starts = [FAT, *(range(2, folder_sectors + 1)), END], {}
    for name, content in padded.items():
        starts[name] = len(table)
        count = len(content) // SECTOR
        table += [*range(len(table) + 1, len(table) + count), END]
    entries = [_entry("Root Entry", 5, child=1, start=END, size=0)]
    for number, (name, content) in enumerate(padded.items(), 1):
        following = number + 1 if number < len(padded) else FREE
        entries.append(_entry(name, 2, right=following, start=starts[name], size=len(content)))
    folder = b"".join(entries).ljust(folder_sectors * SECTOR, b"\0")
    head = struct.pack(
        "<8s16sHHHHH6sIIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", bytes(16), 0x3E, 3, 0xFFFE, 9, 6, bytes(6),
        0, 1, 1, 0, LEAST, END, 0, END, 0, 0,
    )  # fmt: skip
    head += struct.pack("<108I", *([FREE] * 108))
    sectors = struct.pack("<128I", *(table + [FREE] * (128 - len(table))))
    return head + sectors + folder + b"".join(padded.values())


def _entry(name, kind, *, start, size, child=FREE, right=FREE):
    coded = name.encode("utf-16-le") + b"\0\0"
    return struct.pack(
        "<64sHBBIII16sI16sIQ", coded, len(coded), kind, 1, FREE, right, child, bytes(16), 0, bytes(16), start, size
    )


def doc_of(text, *, encrypted=False):
    """A Word document with this text, one paragraph a line."""
    written = text.replace("\n", "\r").encode("cp1252") + b"\r"
    head = bytearray(2048)
    struct.pack_into("<HH", head, 0, 0xA5EC, 0xC1)
    struct.pack_into("<H", head, 0x0A, 0x0200 | (0x0100 if encrypted else 0))
    struct.pack_into("<HII", head, 0x0C, 0, 0, 0)
    struct.pack_into("<II", head, 0x18, 2048, 2048 + len(written))
    struct.pack_into("<H", head, 0x20, 14)
    struct.pack_into("<H", head, 0x3E, 22)
    struct.pack_into("<I", head, 0x4C, len(written))
    struct.pack_into("<H", head, 0x98, 0x5D)
    places = struct.pack("<II", 0, len(written)) + struct.pack("<HIH", 0, 2048 * 2 | 1 << 30, 0)
    table = b"\x02" + struct.pack("<I", len(places)) + places
    struct.pack_into("<II", head, 0x01A2, 0, len(table))
    return compound_of({"WordDocument": bytes(head) + written, "1Table": table})


def xls_of(*sheets):
    """A workbook with these sheets: their name, whether they are hidden, and their rows.

    A cell is None, a text, a number, or a number with its format or the format's number.
    """
    begin, end = _record(0x0809, struct.pack("<HHHHII", 0x0600, 0x0005, 0, 0, 0, 0)), _record(0x0A, b"")
    formats = sorted(
        {cell[1] for _, _, rows in sheets for row in rows for cell in row if isinstance(cell, tuple)}, key=str
    )
    numbers = {written: number for number, written in enumerate(filter(_is_text, formats), 164)}
    looks = b"".join(
        _record(0x041E, struct.pack("<HHB", number, len(written), 1) + written.encode("utf-16-le"))
        for written, number in numbers.items()
    )
    looks += b"".join(
        _record(0xE0, struct.pack("<HHHBBBBIIH", 0, numbers.get(look, look), 0, 0, 0, 0, 0, 0, 0, 0))
        for look in (0, *formats)
    )
    bodies = [begin.replace(b"\x05\0", b"\x10\0", 1) + _cells(rows, formats) + end for _, _, rows in sheets]
    names = [struct.pack("<BB", len(name), 0) + name.encode("latin-1") for name, _, _ in sheets]
    at = len(begin) + len(looks) + len(end) + sum(10 + len(name) for name in names)
    bounds = b""
    for (_, hidden, _), name, body in zip(sheets, names, bodies, strict=True):
        bounds += _record(0x85, struct.pack("<IBB", at, hidden, 0) + name)
        at += len(body)
    return compound_of({"Workbook": begin + looks + bounds + end + b"".join(bodies)})


def _is_text(cell):
    return isinstance(cell, str)


def _cells(rows, formats):
    records = b""
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            if cell is None:
                continue
            number, look = (cell[0], formats.index(cell[1]) + 1) if isinstance(cell, tuple) else (cell, 0)
            place = struct.pack("<HHH", row, column, look)
            if isinstance(cell, str):
                records += _record(0x0204, place + struct.pack("<HB", len(cell), 0) + cell.encode("latin-1"))
            elif isinstance(number, int):  # in short, in a row of one
                short = struct.pack("<HHHIH", row, column, look, number << 2 | 2, column)
                records += _record(0xBD, short)
            else:
                records += _record(0x0203, place + struct.pack("<d", number))
    return records


def _record(kind, content):
    return struct.pack("<HH", kind, len(content)) + content


def ppt_of(*slides, encrypted=False):
    """A presentation whose slides have these texts."""
    shown = b"".join(
        _ppt_record(0x03EE, _ppt_record(0x0FA8, slide.encode("latin-1")), container=True) for slide in slides
    )
    streams = {"PowerPoint Document": shown, "Current User": b""}
    return compound_of({**streams, **({"EncryptedSummary": b""} if encrypted else {})})


def _ppt_record(kind, content, *, container=False):
    return struct.pack("<HHI", 0xF if container else 0, kind, len(content)) + content
