"""Word, Excel and PowerPoint of 1997 to 2003, which the extra `office` reads."""

import pytest

from cragside.adapters.documents import old_office
from cragside.adapters.documents.kinds import OLD_OFFICE, kind_of
from cragside.adapters.documents.loader import FileLoader
from cragside.adapters.documents.old_office import formats_of, stream_of
from cragside.adapters.documents.reading import NEEDS_OFFICE, FileOrigin, Unreadable, is_no_mistake
from tests.unit.documents.old_files import compound_of, doc_of, ppt_of, xls_of

# Where a compound file says how many sectors its table has.
SECTOR_COUNT = 44
XLS = xls_of(("A", False, [["a", "b"]]))
DOC = doc_of("The weir has four gates.\nIts keeper is Odlum.")


def read(content, name):
    kind, file_type = kind_of(content, name, None)
    assert kind is OLD_OFFICE
    return kind.reader(content, FileOrigin(name, file_type))


def test_the_text_of_an_old_document_is_read():
    assert read(DOC, "weir.doc").text.split("\n")[:2] == ["The weir has four gates.", "Its keeper is Odlum."]


async def test_an_old_document_is_read_within_the_limits_of_the_child_process():
    loader = FileLoader()
    try:
        source = await loader.load(DOC, name="weir.doc")
    finally:
        await loader.close()
    assert (source.file_type, source.doc_type) == ("doc", "text")
    assert source.text.startswith("The weir has four gates.")


def test_the_slides_of_an_old_presentation_are_read():
    assert read(ppt_of("The weir", "Four gates"), "weir.ppt").text.split() == ["The", "weir", "Four", "gates"]


def test_rows_of_an_old_workbook_have_their_headers_and_hidden_sheets_are_left_out():
    sheds = ("Sheds", False, [["Shed", "Tenant", "Rent"], [12.0, "Rowing club", 3.5]])
    reading = read(xls_of(sheds, ("Secret", True, [["Password", "swordfish"]])), "sheds.xls")
    assert "Shed: 12; Tenant: Rowing club; Rent: 3.5" in reading.text
    assert "swordfish" not in reading.text
    assert reading.marks[-1].section == "Sheds > row 2"


def test_dates_times_and_durations_of_an_old_workbook_are_written_as_those_of_later_ones():
    # The formats m/d/yy h:mm, h:mm and [h]:mm:ss of Excel.
    row = [(45822.425150463, 22), (45822.0, 22), (0.5625, 20), (1.573611111111111, 46)]
    reading = read(xls_of(("A", False, [["Read", "Built", "Opens", "Lasts"], row])), "a.xls")
    assert reading.text.strip().split("\n")[-1] == (
        "A – Read: 2025-06-14 10:12; Built: 2025-06-14; Opens: 13:30; Lasts: 37:46:00"
    )


@pytest.mark.parametrize(
    ("value", "written", "shown"),
    [
        (0.256, "0.0%", "25.6%"), (0.256, 9, "26%"), (1234.5, '#,##0.00\\ "€"', "1234.50 €"), (1234.5, 4, "1234.50"),
        (4006381333931.0, "0", "4006381333931"), (7, "00000", "00007"), (3, '0" Stück"', "3 Stück"),
        (0.0320717592592593, "mm:ss", "46:11"), (1.57291666666667, "[h]:mm", "37:45"), (2.5, "@", "2.5"),
    ],
)  # fmt: skip
def test_numbers_of_an_old_workbook_have_the_formats_of_later_ones(value, written, shown):
    hidden = ("Hidden", True, [["x", (5.0, "0.0000")]])
    reading = read(xls_of(hidden, ("A", False, [[None, "Of", "Value"], [None, "the weir", (value, written)]])), "a.xls")
    assert reading.text.strip().endswith(f"; Value: {shown}")


def test_an_old_workbook_that_only_calamine_reads_has_no_formats():
    content = bytearray(xls_of(("A", False, [["Key", "Value"], ["a", (0.25, 9)]])))
    assert "Value: 25%" in read(bytes(content), "a.xls").text
    content[SECTOR_COUNT] = 200
    assert "Value: 0.25" in read(bytes(content), "a.xls").text


@pytest.mark.parametrize("cut", range(0, 300, 7))
def test_formats_in_records_that_are_cut_off_are_no_error(cut):
    written = xls_of(("A", False, [["Key", "Value"], ["a", (0.25, "0.0%"), 7]]))
    content = written[: 1536 + cut] + bytes(len(written) - 1536 - cut)
    assert all(isinstance(each, dict) for each in formats_of(stream_of(content)))


def test_an_old_file_is_known_by_its_content_under_any_name():
    assert "four gates" in read(DOC, "weir.xls").text
    assert "four gates" in read(DOC, "weir.docx").text


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (doc_of("The weir", encrypted=True), "a.doc"),
        (ppt_of("The weir", encrypted=True), "a.ppt"),
        (compound_of({"Workbook": b"\x09\x08\x10\0" + bytes(16) + b"\x2f\0\x06\0" + bytes(6)}), "a.xls"),
        (compound_of({"EncryptedPackage": b"", "EncryptionInfo": b""}), "a.docx"),
    ],
)
def test_a_file_with_a_password_says_so(content, name):
    with pytest.raises(Unreadable, match="is protected by a password"):
        read(content, name)


BROKEN = {
    "no document at all": compound_of({"Other": b""}),
    "cut off": DOC[:1500],
    "a record that is longer than its file": XLS.replace(b"\x04\x02\x0a\0", b"\x04\x02\x02\0"),
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_damaged_file_is_refused(content):
    with pytest.raises(Unreadable, match="is damaged"):
        read(content, "a.doc")


def test_without_the_extra_the_reason_says_what_to_do(monkeypatch):
    def missing(*_):
        raise ModuleNotFoundError

    monkeypatch.setattr(old_office, "_document", missing)
    with pytest.raises(Unreadable, match=r"extra `office`.*save the file as \.docx") as refused:
        read(DOC, "weir.doc")
    assert refused.value.reason == NEEDS_OFFICE
    assert is_no_mistake(NEEDS_OFFICE)


def test_a_page_that_is_named_as_an_old_document_is_a_page():
    assert kind_of(b"<html><body>Sheds</body></html>", "export.xls", "application/vnd.ms-excel")[1] == "html"
