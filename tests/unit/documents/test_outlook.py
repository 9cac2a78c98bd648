"""Messages of Outlook: they read as the same mail in a file of its own, and damaged ones are refused."""

import struct
from datetime import UTC, datetime
from email.message import EmailMessage

import pytest

from cragside.adapters.documents import emails
from cragside.adapters.documents.kinds import OUTLOOK, kind_of
from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.documents.reading import FileOrigin, Unreadable
from cragside.adapters.documents.rich_text import unpacked
from tests.unit.documents import outlook_files as made
from tests.unit.documents.old_files import doc_of
from tests.unit.documents.outlook_files import file_of, forwarded, msg_of

SENT = datetime(2025, 3, 3, 8, tzinfo=UTC)
TICKS = int((SENT - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10_000_000
WREN = {made.SENDER: "Wren", made.SENDER_ADDRESS: "wren@example.org", made.SENT: TICKS}
CREW = (
    {made.NAME: "Crew, all", made.ADDRESS: "crew@example.org", made.RECEIVES: 1},
    {made.NAME: "Jürgen", made.ADDRESS: "j@example.org", made.RECEIVES: 2},
    {made.NAME: "Hidden", made.ADDRESS: "hidden@example.org", made.RECEIVES: 3},
)
CSV = b"Item,Price\nWeathervane,685\n"
DAMAGED = "is damaged, or no message of Outlook"


def message(subject="Ladder", text="Rung 14 is cracked.", **held):
    return msg_of({**WREN, made.SUBJECT: subject, made.BODY: text}, recipients=CREW, **held)


def read(tree, name="a.msg"):
    content = file_of(tree) if isinstance(tree, dict) else tree
    kind, file_type = kind_of(content, name, None)
    assert kind is OUTLOOK
    return kind.reader(content, FileOrigin(name, file_type))


def mail(subject="Ladder", text="Rung 14 is cracked."):
    same = EmailMessage()
    same["From"], same["To"] = "Wren <wren@example.org>", '"Crew, all" <crew@example.org>'
    same["Cc"], same["Date"], same["Subject"] = "Jürgen <j@example.org>", SENT, subject
    same.set_content(text)
    return same


def test_a_message_reads_as_the_same_mail_does():
    inner = mail("Inner", "Ordered at Pellam.")
    inner.add_attachment(CSV, maintype="text", subtype="csv", filename="quote.csv")
    same = mail()
    same.add_alternative("<p>Rung 14 is <b>cracked</b>.</p>", subtype="html")
    same.add_attachment(CSV, maintype="text", subtype="csv", filename="Preise für 2025.csv")
    same.add_attachment(b"PK", maintype="application", subtype="zip", filename="drawings.zip")
    same.add_attachment(inner)
    page = {made.PAGE: b"<p>Rung 14 is <b>cracked</b>.</p>"}
    text = {**WREN, made.SUBJECT: "Ladder", made.BODY: "Rung 14 is cracked.\r\n", **page}
    quote = {made.FILE: CSV, made.FILE_NAME: "quote.csv", made.MEDIA_TYPE: "text/csv"}
    outlook = msg_of(
        text,
        recipients=CREW,
        attachments=[
            {made.FILE: CSV, made.FILE_NAME: "Preise für 2025.csv"},
            {made.FILE: b"PK", made.FILE_NAME: "drawings.zip"},
            forwarded(
                {**WREN, made.SUBJECT: "Inner", made.BODY: "Ordered at Pellam."}, recipients=CREW, attachments=[quote]
            ),
        ],
    )
    expected = emails.read(same.as_bytes(), FileOrigin("a.eml", "eml"))
    reading = read(outlook)
    assert reading == expected
    assert 'To: "Crew, all" <crew@example.org>\nCc: Jürgen <j@example.org>\nDate: Mon, 03 Mar 2025' in reading.text
    assert "Attachment quote.csv" in reading.text
    assert reading.tier1["from"] == "Wren <wren@example.org>"


async def test_a_message_is_read_within_the_limits_of_the_child_process():
    loader = FileLoader()
    try:
        source = await loader.load(file_of(message()), name="ladder.msg")
    finally:
        await loader.close()
    assert (source.file_type, source.doc_type, source.title) == ("msg", "email", "Ladder")
    assert source.text.rstrip().endswith("Rung 14 is cracked.")


@pytest.mark.parametrize("name", ["ladder.msg", "ladder", "ladder.bin"])
def test_a_message_is_told_by_its_name_or_its_streams(name):
    assert "Rung 14" in read(message(), name).text


def test_texts_of_8_bits_are_read_by_their_code_page():
    tree = msg_of(
        {
            made.CODE_PAGE: 1251,
            made.SUBJECT: ("cp1251", "Журнал"),
            made.BODY: ("cp1251", "Слесарь Огородников"),
            made.SHOWN_TO: ("cp1251", "Котельная; Склад"),
        }
    )
    reading = read(tree)
    assert (reading.title, reading.text.strip()) == (
        "Журнал",
        "To: Котельная, Склад\nSubject: Журнал\n\nСлесарь Огородников",
    )


def test_a_page_is_read_by_its_code_page():
    page = "<p>Größe: 38 mm, Lieferung über Łódź</p>".encode("iso8859_2")
    assert "Größe: 38 mm, Lieferung über Łódź" in read(msg_of({made.PAGE: page, made.INTERNET_PAGE: 28592})).text


def test_headers_that_the_message_came_with_are_kept():
    headers = (
        "Microsoft Mail Internet Headers Version 2.0\r\nReceived: by mx\r\nFrom: Ada <ada@example.org>\r\n"
        "Message-ID: <one@example.org>\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    )
    reading = read(msg_of({**WREN, made.SUBJECT: "Gate", made.BODY: "Closed.", made.HEADERS: headers}))
    assert (reading.tier1["from"], reading.tier1["messageId"]) == ("Ada <ada@example.org>", "<one@example.org>")
    assert reading.text.rstrip().endswith("Subject: Gate\n\nClosed.")


def packed(rich_text):
    """Rich text that is packed without a reference."""
    body = b"".join(b"\0" + rich_text[at : at + 8] for at in range(0, len(rich_text), 8))
    return struct.pack("<II4sI", len(body) + 12, len(rich_text), b"LZFu", 0) + body


def test_packed_rich_text_is_read_where_there_is_no_other_text():
    assert "Sluice 7" in read(msg_of({made.RICH_TEXT: packed(rb"{\rtf1 Sluice 7\par}")})).text


def test_packed_rich_text_is_unpacked_as_its_description_says():
    # The examples of [MS-OXRTFCP] 4.1 and 4.2.
    plain = "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    crossed = "1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0"
    assert unpacked(bytes.fromhex(plain)) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    assert unpacked(bytes.fromhex(crossed)) == b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"


def test_packed_rich_text_that_claims_too_much_is_refused():
    with pytest.raises(Unreadable, match="which is the limit"):
        unpacked(struct.pack("<II4sI", 100, 2**31, b"LZFu", 0))


def test_a_picture_in_the_text_is_no_attachment():
    picture = {made.FILE: b"\x89PNG\r\n\x1a\n", made.FILE_NAME: "logo.png", made.CONTENT_ID: "logo@1"}
    tree = msg_of({made.PAGE: b'<p>Closed.<img src="cid:logo@1">'}, attachments=[picture])
    assert read(tree).unread == ""
    assert read(message(attachments=[picture])).unread == "the attachment logo.png was not read"


def test_the_text_of_a_signed_message_is_read():
    signed = (
        b"Content-Type: multipart/signed; boundary=b; protocol=application/pkcs7-signature\r\n\r\n"
        b"--b\r\nContent-Type: text/plain\r\n\r\nRung 14 is cracked.\r\n"
        b"--b\r\nContent-Type: application/pkcs7-signature; name=smime.p7s\r\n\r\nAA==\r\n--b--\r\n"
    )
    attached = {made.FILE: signed, made.FILE_NAME: "smime.p7m", made.MEDIA_TYPE: "multipart/signed"}
    assert "Rung 14 is cracked." in read(message(text="", attachments=[attached])).text


def test_a_drawing_in_the_text_is_named_as_not_read():
    drawing = {made.FOLDER: {"CONTENTS": b"drawn"}}
    assert "1 rung" in read(message(text="1 rung", attachments=[drawing])).text
    assert "was not read" in read(message(attachments=[drawing])).unread


def test_forwarded_messages_are_read_five_deep():
    inner = {}
    for depth in range(9, 0, -1):
        inner = {"attachments": [forwarded({made.SUBJECT: str(depth), made.BODY: f"Text {depth}."}, **inner)]}
    reading = read(message(**inner))
    assert "Text 5." in reading.text
    assert "Text 6." not in reading.text
    assert "forwarded more than 5 times" in reading.unread


def test_a_message_attached_to_a_mail_is_read():
    outer = mail("Fwd", "See below.")
    outer.add_attachment(file_of(message()), maintype="application", subtype="vnd.ms-outlook", filename="ladder.msg")
    assert "Rung 14 is cracked." in emails.read(outer.as_bytes(), FileOrigin("a.eml", "eml")).text


def test_many_recipients_and_long_texts_are_read():
    crew = [{made.NAME: f"Hand {n}", made.ADDRESS: f"h{n}@example.org", made.RECEIVES: 1} for n in range(300)]
    text = "Rung 14 is cracked. " * 5000
    reading = read(msg_of({**WREN, made.SUBJECT: "Ladder", made.BODY: text}, recipients=crew))
    assert reading.text.count("Rung 14") == 5000
    assert len(reading.tier1["to"]) == 200


def entry_of(content, name):
    return content.index(name.encode("utf-16-le") + b"\0\0")


def with_number(content, at, number):
    return content[:at] + struct.pack("<I", number) + content[at + 4 :]


def cyclic_stream():
    content = file_of(message(text="Rung 14 is cracked. " * 500))
    first = struct.unpack_from("<I", content, entry_of(content, "__substg1.0_1000001F") + 116)[0]
    table = 512 * (struct.unpack_from("<I", content, 76)[0] + 1)
    return with_number(content, table + 4 * (first + 3), first)


def cyclic_folder():
    content = file_of(message())
    first = struct.unpack_from("<I", content, 48)[0]
    table = 512 * (struct.unpack_from("<I", content, 76)[0] + 1)
    return with_number(content, table + 4 * first, first)


def entry_under_itself():
    content = file_of(message())
    at = entry_of(content, "__substg1.0_1000001F")
    return with_number(content, at + 68, (at - entry_of(content, "Root Entry")) // made.ENTRY)


def changed_entry(name, at, number):
    content = file_of(message())
    return with_number(content, entry_of(content, name) + at, number)


BAD = {
    "an old document": doc_of("The weir has four gates."),
    "a text": b"From: a@example.org\nSubject: b\n\nText",
    "only a signature": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "a cyclic stream": cyclic_stream(),
    "a cyclic folder": cyclic_folder(),
    "a stream longer than the file": changed_entry("__substg1.0_1000001F", 120, 2**31),
    "an entry that is under itself": entry_under_itself(),
    "a table of sectors longer than the file": with_number(file_of(message()), 44, 2**31),
    **{f"a file cut to {part}/8": file_of(message())[: len(file_of(message())) * part // 8] for part in range(1, 8)},
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_what_is_no_whole_message_is_refused(content):
    with pytest.raises(Unreadable, match=DAMAGED):
        read(content)


def test_streams_that_share_their_bytes_are_refused():
    tree = message(attachments=[{made.FILE: bytes(100_000), made.FILE_NAME: f"{n}.bin"} for n in range(3)])
    content = file_of(tree)
    first = content.index("__substg1.0_37010102".encode("utf-16-le"))
    start, at = struct.unpack_from("<I", content, first + 116)[0], first
    while (at := content.find("__substg1.0_37010102".encode("utf-16-le"), at + 1)) > 0:
        content = with_number(content, at + 116, start)
    with pytest.raises(Unreadable, match=DAMAGED):
        read(content)


def test_an_old_document_that_holds_a_message_stays_a_document():
    assert kind_of(file_of(message()), "weir.doc", None)[1] == "doc"
