"""Messages of Outlook (MS-OXMSG), made of their properties, in compound files (MS-CFB) with folders."""

import struct

SECTOR, SMALL, LEAST = 512, 64, 4096
FREE, END, TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
ENTRY = 128
OUTERMOST, EMBEDDED, PART = 32, 24, 8
SUBJECT, BODY, PAGE, RICH_TEXT, HEADERS = 0x0037, 0x1000, 0x1013, 0x1009, 0x007D
SENDER, SENDER_ADDRESS, SHOWN_TO, SHOWN_CC, SENT = 0x0C1A, 0x5D01, 0x0E04, 0x0E03, 0x0039
NAME, ADDRESS, RECEIVES = 0x3001, 0x39FE, 0x0C15
FILE, FILE_NAME, MEDIA_TYPE, CONTENT_ID = 0x3701, 0x3707, 0x370E, 0x3712
CODE_PAGE, INTERNET_PAGE = 0x3FFD, 0x3FDE
FOLDER = "__substg1.0_3701000D"


def msg_of(properties, *, recipients=(), attachments=(), head=OUTERMOST):
    """A message with these properties by number. A recipient is a dict, an attachment too, or another tree."""
    tree = _item(properties, head)
    for number, recipient in enumerate(recipients):
        tree[f"__recip_version1.0_#{number:08X}"] = _item(recipient, PART)
    for number, attachment in enumerate(attachments):
        holder = _item({} if FOLDER in attachment else attachment, PART)
        tree[f"__attach_version1.0_#{number:08X}"] = {**holder, **(attachment if FOLDER in attachment else {})}
    return tree


def forwarded(properties, **held):
    """A message as an attachment."""
    return {FOLDER: msg_of(properties, head=EMBEDDED, **held)}


def _item(properties, head):
    """Texts are in UTF-16. A pair of a code page's encoding and a text is in 8 bits."""
    streams, listed = {}, b""
    for name, value in properties.items():
        if isinstance(value, int):
            kind = 0x0040 if value >> 32 else 0x0003
            listed += struct.pack("<IIQ", name << 16 | kind, 0, value)
        elif isinstance(value, str):
            streams[f"__substg1.0_{name:04X}001F"] = value.encode("utf-16-le")
        elif isinstance(value, tuple):
            streams[f"__substg1.0_{name:04X}001E"] = value[1].encode(value[0])
        else:
            streams[f"__substg1.0_{name:04X}0102"] = value
    return {"__properties_version1.0": bytes(head) + listed, **streams}


def file_of(tree):
    """The compound file of a tree, whose folders are dicts and whose streams are bytes."""
    entries, contents = [["Root Entry", 5, FREE, FREE, FREE, END, 0]], {}
    entries[0][4] = _folder(tree, entries, contents)
    small, small_table, large = b"", [], {}
    for number, content in contents.items():
        if 0 < len(content) < LEAST:
            count = -(-len(content) // SMALL)
            entries[number][5] = len(small_table)
            small_table += [*range(len(small_table) + 1, len(small_table) + count), END]
            small += content.ljust(count * SMALL, b"\0")
        elif content:
            large[number] = content
    large[0] = small
    entries[0][6] = len(small)
    table, body = [], b""

    def placed(content):
        nonlocal body
        count = -(-len(content) // SECTOR)
        first = len(table) if count else END
        table.extend([*range(len(table) + 1, len(table) + count), END] if count else [])
        body += content.ljust(count * SECTOR, b"\0")
        return first

    for number, content in large.items():
        entries[number][5] = placed(content)
    folder = b"".join(_entry(*entry) for entry in entries)
    folder_at = placed(folder.ljust(-(-len(folder) // SECTOR) * SECTOR, b"\0"))
    packed = struct.pack(f"<{len(small_table)}I", *small_table)
    small_sectors = -(-len(packed) // SECTOR)
    small_at = placed(packed.ljust(small_sectors * SECTOR, b"\xff"))
    table_at, sectors = len(table), 1
    while sectors * SECTOR // 4 < table_at + sectors:
        sectors += 1
    table += [TABLE] * sectors
    body += struct.pack(f"<{len(table)}I", *table).ljust(sectors * SECTOR, b"\xff")
    head = struct.pack(
        "<8s16sHHHHH6sIIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", bytes(16), 0x3E, 3, 0xFFFE, 9, 6, bytes(6),
        0, sectors, folder_at, 0, LEAST, small_at, small_sectors, END, 0, table_at,
    )  # fmt: skip
    places = [*range(table_at + 1, table_at + sectors)]
    return head + struct.pack("<108I", *places, *([FREE] * (108 - len(places)))) + body


def _folder(tree, entries, contents):
    """Add the entries of a folder. The number of the one in the middle is returned, under which the others are."""
    numbers = []
    for name in sorted(tree, key=lambda name: (len(name), name.upper())):
        held, number = tree[name], len(entries)
        entries.append([name, 1 if isinstance(held, dict) else 2, FREE, FREE, FREE, END, 0])
        numbers.append(number)
        if isinstance(held, dict):
            entries[number][4:6] = _folder(held, entries, contents), 0
        else:
            contents[number], entries[number][6] = held, len(held)
    return _balanced(numbers, entries)


def _balanced(numbers, entries):
    if not numbers:
        return FREE
    middle = len(numbers) // 2
    entries[numbers[middle]][2] = _balanced(numbers[:middle], entries)
    entries[numbers[middle]][3] = _balanced(numbers[middle + 1 :], entries)
    return numbers[middle]


def _entry(name, kind, left, right, child, start, size):
    coded = name.encode("utf-16-le") + b"\0\0"
    return struct.pack(
        "<64sHBBIII16sI16sIQ", coded, len(coded), kind, 1, left, right, child, bytes(16), 0, bytes(16), start, size
    )
