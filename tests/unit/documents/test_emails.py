"""Reads messages as people read them: texts, forwarded messages, files, and mailboxes of them."""

import io
from email.message import EmailMessage
from email.policy import SMTPUTF8

import pytest

from cragside.adapters.documents import emails
from cragside.adapters.documents.kinds import EMAIL, MAILBOX, kind_of
from cragside.adapters.documents.reading import FileOrigin, Unreadable


def message(subject="Ladder", text="See below.", **headers):
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Wren <wren@example.org>", "crew@example.org", subject
    for name, value in headers.items():
        made[name] = value
    if text is not None:
        made.set_content(text)
    return made


def read(content, name="a.eml"):
    content = content.as_bytes() if isinstance(content, EmailMessage) else content
    return emails.read(content, FileOrigin(name, "eml"))


def sections(reading):
    return [(mark.section, reading.text[mark.start :].split("\n")[0]) for mark in reading.marks]


@pytest.mark.parametrize(
    "plain", [" ", "\n\n", "Your mail program does not show HTML. Open this message in a browser."]
)
def test_a_blank_or_stub_plain_part_does_not_hide_the_html_part(plain):
    made = message(text=plain)
    made.add_alternative("<h1>Order LX-2207</h1><p>Seat: Balcony 14</p>", subtype="html")
    assert "Seat: Balcony 14" in read(made).text


@pytest.mark.parametrize("kind", ["plain", "html"])
def test_a_message_whose_text_is_binary_data_is_refused(kind):
    content = f"From: a@weir.example\nTo: b@weir.example\nContent-Type: text/{kind}\n\n".encode()
    with pytest.raises(Unreadable, match="holds binary data where its text should be"):
        read(content + bytes(range(1, 9)) * 99)


def test_a_plain_part_that_says_what_the_html_part_says_is_taken():
    made = message(text="The skiff needs rowlocks.\n- size 38\n")
    made.add_alternative("<p>The skiff needs rowlocks.<ul><li>size 38</ul>", subtype="html")
    text = read(made).text
    assert "- size 38" in text
    assert text.count("rowlocks") == 1


def test_two_parts_that_say_different_things_are_both_kept():
    made = message(text=" ".join(f"plainword{n}" for n in range(50)))
    made.add_alternative("<p>" + " ".join(f"richword{n}" for n in range(50)), subtype="html")
    text = read(made).text
    assert "plainword49" in text
    assert "richword49" in text


LETTER = "Hello Bert, here are the prices of the kiosk for the coming summer, as we agreed on Monday at the lake."


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        ("<table><tr><td>Ice</td><td>2,00</td></tr></table>", "Ice | 2,00"),
        ("<p>Gate 7</p>", "Gate 7"),
        ("<p>The jetty stays closed until the crane has lifted every boat.</p>", "jetty stays closed"),
    ],
)
def test_an_html_part_that_says_more_than_the_plain_part_counts(more, seen):
    made = message(text=f"{LETTER} See https://kiosk.example/view?id=4471")
    made.add_alternative(f"<p>{LETTER}</p>{more}", subtype="html")
    text = read(made).text
    assert seen in text
    assert text.count("prices of the kiosk") == 1


def test_a_number_of_the_plain_part_that_the_html_part_lacks_is_kept():
    made = message(text="The fare is 4,50 EUR.")
    made.add_alternative("<p>The ferry leaves at 8:40 from the lower landing.</p>", subtype="html")
    assert "4,50" in read(made).text
    assert "8:40" in read(made).text


def test_addresses_and_a_footer_make_no_other_text():
    made = message(text=f"_{LETTER}_ [1]\n\n[1] https://kiosk.example/a8x71\n")
    made.add_alternative(f"<p><a href='https://t.example/99'>{LETTER}</a></p><p>Unsubscribe</p>", subtype="html")
    text = read(made).text
    assert "kiosk.example" in text
    assert text.count("prices of the kiosk") == 1


def test_all_texts_of_a_mixed_message_are_read():
    made = message(text="First.")
    made.make_mixed()
    second = EmailMessage()
    second.set_content("Second, behind a picture.")
    made.attach(second)
    text = read(made).text
    assert "First.\n\nSecond, behind a picture." in text


def test_forwarded_messages_are_sections():
    inner = message("Ladder inspection", "Rung 14 is cracked.")
    inner.add_attachment(b"Item,Price\nRung,12\n", maintype="text", subtype="csv", filename="parts.csv")
    made = message("Fwd: Ladder inspection")
    made.add_attachment(inner)
    reading = read(made)
    assert "Subject: Ladder inspection\n\nRung 14 is cracked." in reading.text
    assert reading.title == "Fwd: Ladder inspection"
    named = [section for section, _ in sections(reading)]
    assert named[:2] == ["Ladder inspection", "Ladder inspection > parts.csv"]
    assert named[-1] == "Ladder inspection > parts.csv > row 2"


def test_a_forwarded_message_in_base64_is_read():
    import base64

    inner = base64.encodebytes(message("Inner", "Rung 14 is cracked.").as_bytes())
    made = (
        b"From: a@example.org\nTo: b@example.org\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
        b"--b\nContent-Type: text/plain\n\nFYI\n--b\nContent-Type: message/rfc822\n"
        b"Content-Transfer-Encoding: base64\n\n" + inner + b"\n--b--\n"
    )
    assert "Rung 14 is cracked." in read(made).text


def test_a_digest_is_read():
    made = (
        b"From: a@example.org\nTo: b@example.org\nMIME-Version: 1.0\nContent-Type: multipart/digest; boundary=b\n\n"
        b"--b\n\nFrom: c@example.org\nSubject: One\n\nRowlocks, 38 mm.\n"
        b"--b\n\nFrom: d@example.org\nSubject: Two\n\n44 crowns.\n--b--\n"
    )
    reading = read(made)
    assert "Rowlocks, 38 mm." in reading.text
    assert [section for section, _ in sections(reading)] == ["One", "Two"]


def test_attached_files_are_read_with_their_places(docx_of):
    made = message("Quote")
    made.add_attachment(b"Item,Price\nWeathervane,685\n", maintype="text", subtype="csv", filename="quote.csv")
    made.add_attachment(
        docx_of("<w:p><w:r><w:t>Delivery takes nine weeks.</w:t></w:r></w:p>"),
        maintype="application",
        subtype="octet-stream",
        filename="terms.docx",
    )
    made.add_attachment(b"PK", maintype="application", subtype="zip", filename="drawings.zip")
    made.add_attachment(b"\x89PNG\r\n\x1a\n", maintype="image", subtype="png", filename="sketch.png")
    reading = read(made)
    assert "Item: Weathervane; Price: 685" in reading.text
    assert "Delivery takes nine weeks." in reading.text
    assert "Attachments (not indexed): drawings.zip, sketch.png" in reading.text
    assert reading.unread == "the attachments drawings.zip, sketch.png were not read"
    assert ("quote.csv > row 2", "Item: Weathervane; Price: 685") in sections(reading)
    assert sections(reading)[-1] == ("terms.docx", "Attachment terms.docx:")


def test_a_damaged_attachment_is_named_and_the_message_is_read():
    made = message(text="The terms are attached.")
    made.add_attachment(b"PK\x03\x04broken", maintype="application", subtype="msword", filename="terms.docx")
    reading = read(made)
    assert "The terms are attached." in reading.text
    assert reading.unread == "the attachment terms.docx was not read"


def test_a_picture_in_the_text_is_no_attachment():
    made = message(text="Hello")
    made.add_alternative("<p>Hello <img src=cid:logo>", subtype="html")
    made.get_payload()[1].add_related(
        b"\x89PNG\r\n\x1a\n", maintype="image", subtype="png", cid="<logo>", filename="logo.png", disposition="inline"
    )
    assert read(made).unread == ""


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_a_message_in_utf16_or_with_a_byte_order_mark_is_read(encoding):
    text = "From: Wren <wren@example.org>\nSubject: Farbe der Bretter\n\nDie Bretter werden Falunrot – 2 Anstriche."
    for head in ("", "Content-Type: text/plain; charset=utf-16\n"):
        reading = read((head + text).encode(encoding))
        assert reading.title == "Farbe der Bretter"
        assert reading.text.endswith("Die Bretter werden Falunrot – 2 Anstriche.\n\n")


def test_headers_and_texts_in_a_legacy_encoding_are_recognised():
    text = "From: wren@example.org\nSubject: Журнал котельной\n\nНасос номер четыре заменил слесарь Огородников."
    reading = read(text.encode("cp1251"))
    assert reading.title == "Журнал котельной"
    assert "слесарь Огородников" in reading.text


def test_forwarding_is_followed_only_so_deep():
    made = message("0", "Text 0.")
    for depth in range(1, 9):
        outer = message(str(depth), f"Text {depth}.")
        outer.add_attachment(made)
        made = outer
    reading = read(made)
    assert "Text 3." in reading.text
    assert "Text 2." not in reading.text
    assert "forwarded more than 5 times" in reading.unread


def test_files_in_a_message_are_read_only_up_to_a_number():
    made = message()
    for number in range(202):
        made.add_attachment(f"Content {number}", filename=f"{number}.txt")
    reading = read(made)
    assert "Content 199" in reading.text
    assert "Content 200" not in reading.text
    assert reading.unread == "the attachments 200.txt, 201.txt were not read"


def mailbox(*messages):
    file = io.BytesIO()
    for made in messages:
        content = made.as_bytes(policy=SMTPUTF8.clone(linesep="\n")) if isinstance(made, EmailMessage) else made
        file.write(b"From wren@example.org Mon Mar  3 08:00:00 2025\n" + content + b"\n\n")
    return file.getvalue()


def test_each_message_of_a_mailbox_is_a_section():
    reading = emails.read_mailbox(
        mailbox(
            message("Skiff", "The skiff needs rowlocks, 38 mm."),
            message("Re: Skiff", ">From Pellam, for 44 crowns.\n\nFrom now on we order there at 10:30."),
        ),
        FileOrigin("club.mbox", "mbox"),
    )
    assert [section for section, _ in sections(reading)] == ["Skiff", "Re: Skiff"]
    assert all(mark.apart for mark in reading.marks)
    assert "\nFrom Pellam, for 44 crowns." in reading.text
    assert "From now on we order there at 10:30." in reading.text


def test_a_mailbox_is_told_by_its_first_line():
    content = mailbox(message("Skiff", "Rowlocks."))
    assert kind_of(content, "Inbox", None) == (MAILBOX, "mbox")
    assert kind_of(content, "club.mbox", None) == (MAILBOX, "mbox")
    assert kind_of(content, "one.eml", None) == (EMAIL, "eml")
    assert kind_of(b"From Monday on: see 10:30\nA: b", "note.txt", None)[1] == "txt"


def test_a_message_that_cannot_be_read_costs_that_message():
    reading = emails.read_mailbox(
        mailbox(message("Skiff", "Rowlocks."), b"no headers"), FileOrigin("club.mbox", "mbox")
    )
    assert "Rowlocks." in reading.text
    assert reading.unread == "1 of 2 messages could not be read"


def test_a_mailbox_without_messages_is_refused():
    with pytest.raises(Unreadable, match="no message"):
        emails.read_mailbox(b"nothing of the kind", FileOrigin("club.mbox", "mbox"))
