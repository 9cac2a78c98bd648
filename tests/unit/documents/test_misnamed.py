"""Files with the names of old Office files that are something else, as programs export them."""

import pytest

from cragside.adapters.documents.kinds import kind_of
from cragside.adapters.documents.reading import FileOrigin, Unreadable

ROWS = "Name;Town;Price\nAnna;Köln;3,50\nBert;Bonn;4,50\n"
READ = ["Name: Anna; Town: Köln; Price: 3,50", "Name: Bert; Town: Bonn; Price: 4,50"]


def read(content, name, content_type=None):
    kind, file_type = kind_of(content, name, content_type)
    return kind.reader(content, FileOrigin(name, file_type))


@pytest.mark.parametrize(
    "content",
    [
        ROWS.encode(), ROWS.encode("cp1252"), ROWS.encode("utf-8-sig"), ROWS.replace(";", "\t").encode("utf-16"),
        ROWS.replace(";", "\t").encode(), f"sep=;\n{ROWS}".encode(),
    ],
)  # fmt: skip
@pytest.mark.parametrize("content_type", [None, "application/vnd.ms-excel"])
def test_a_table_of_text_that_is_named_as_an_old_workbook_is_a_table(content, content_type):
    assert [line for line in read(content, "export.xls", content_type).text.split("\n\n") if "Name:" in line] == READ


def test_a_table_of_text_that_is_declared_as_an_old_workbook_is_a_table():
    assert kind_of(ROWS.encode(), "export.csv", "application/vnd.ms-excel")[1] == "csv"


@pytest.mark.parametrize(
    "start",
    [
        "<table>", "<!-- export --><table>", "<html xmlns:x='urn:schemas-microsoft-com:office:excel'><body><table>",
        "<?xml version='1.0'?>\n<!DOCTYPE html><html><body><table>",
        "\n<meta charset='utf-8'><style>td {}</style><table>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("name", ["export.xls", "export.doc"])
def test_a_page_that_is_named_as_an_old_office_file_is_a_page(start, encoding, name):
    content = f"{start}<tr><td>Name</td><td>Town</td></tr><tr><td>Anna</td><td>Bonn</td></tr></table>".encode(encoding)
    assert "| Anna | Bonn |" in read(content, name).text


def test_texts_and_rich_texts_that_are_named_as_old_documents_are_such():
    assert read(b"The weir has four gates.\nIts keeper is Odlum; Ines.", "weir.doc").text.startswith("The weir")
    assert read(rb"{\rtf1 The weir has four gates.}", "weir.doc").text.strip() == "The weir has four gates."


ARCHIVE = """From: <Saved by a browser>
Subject: Gates
MIME-Version: 1.0
Content-Type: multipart/related; boundary="b"; type="text/html"

--b
Content-Type: text/html; charset="utf-8"
Content-Transfer-Encoding: quoted-printable
Content-Location: https://weir.example/gates

<html><head><title>Gates</title></head><body><p>The weir has f=C3=BCnf gates.</p></body></html>
--b
Content-Type: text/css

p { color: red }
--b
Content-Type: text/html; charset="utf-8"

<html><body><h2>Locks</h2><p>There are two locks.</p></body></html>
--b--
"""


@pytest.mark.parametrize("name", ["gates.doc", "gates.xls", "gates.mht", "gates.mhtml"])
def test_the_pages_of_an_archive_are_read(name):
    reading = read(ARCHIVE.encode(), name)
    assert "The weir has fünf gates." in reading.text
    assert "There are two locks." in reading.text
    assert "color" not in reading.text
    assert reading.title == "Gates"
    assert [mark.start for mark in reading.marks if mark.apart] == [0, reading.text.index("Locks")]


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize(
    ("link", "head"),
    [
        ("../looks/a.css", "Content-Location: https://weir.example/looks/a.css"),
        ("https://weir.example/a.css", "Content-Location: https://weir.example/a.css"),
        ("cid:css-7@mhtml.blink", "Content-Location: cid:css-7@mhtml.blink"),
        ("cid:css-7@mhtml.blink", "Content-ID: <css-7@mhtml.blink>"),
    ],
)
def test_text_that_a_style_sheet_of_the_archive_hides_is_not_read(link, head):
    written = ARCHIVE.replace("weir.example/gates", "weir.example/pages/gates").replace(
        "<head>", f"<head><link rel=3Dstylesheet href=3D'{link}'><link rel=3Dstylesheet href=3D'http://['>"
    )
    hiding = written.replace("Content-Type: text/css\n", f"Content-Type: text/css\n{head}\n")
    hiding = hiding.replace("</p></body>", "</p><p class=3Dx>secret</p></body>", 1)
    reading = read(hiding.replace("p { color: red }", ".x { display: none }").encode(), "gates.mht")
    assert "The weir has fünf gates." in reading.text
    assert "secret" not in reading.text


def test_an_archive_without_a_page_says_so():
    with pytest.raises(Unreadable, match="has no page with text"):
        read(ARCHIVE.replace("text/html; ch", "text/x; ch").encode(), "gates.mht")


BOOK = """<?xml version="1.0"?>
<?mso-application progid="Excel.Sheet"?>
<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet" xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet"
 xmlns:x="urn:schemas-microsoft-com:office:excel">
<Styles><Style ss:ID="p"><NumberFormat ss:Format="Percent"/></Style>
<Style ss:ID="l"><NumberFormat ss:Format="0&quot;. Liga&quot;"/></Style>
<Style ss:ID="d"><NumberFormat ss:Format="[h]:mm"/></Style></Styles>
<Worksheet ss:Name="Gates"><Table>
<Row><Cell><Data ss:Type="String">Gate</Data></Cell><Cell><Data ss:Type="String">Share</Data></Cell>
<Cell><Data ss:Type="String">League</Data></Cell><Cell><Data ss:Type="String">Built</Data></Cell>
<Cell><Data ss:Type="String">Lasts</Data></Cell></Row>
<Row ss:Index="4"><Cell><Data ss:Type="String">North</Data></Cell>
<Cell ss:StyleID="p"><Data ss:Type="Number">0.256</Data></Cell>
<Cell ss:StyleID="l"><Data ss:Type="Number">3</Data></Cell>
<Cell><Data ss:Type="DateTime">2025-03-11T00:00:00.000</Data></Cell>
<Cell ss:StyleID="d"><Data ss:Type="DateTime">1900-01-01T13:45:00.000</Data></Cell></Row>
<Row><Cell><Data ss:Type="String">South</Data></Cell><Cell ss:Index="4"><Data ss:Type="String">soon</Data></Cell></Row>
</Table></Worksheet>
<Worksheet ss:Name="Secret"><Table><Row><Cell><Data ss:Type="String">swordfish</Data></Cell></Row></Table>
<x:WorksheetOptions><x:Visible>SheetHidden</x:Visible></x:WorksheetOptions></Worksheet>
</Workbook>"""


@pytest.mark.parametrize("name", ["gates.xls", "gates.xml"])
def test_a_workbook_in_xml_is_read_as_others(name):
    reading = read(BOOK.encode(), name)
    assert "Gates – Gate: North; Share: 25.60%; League: 3. Liga; Built: 2025-03-11; Lasts: 37:45" in reading.text
    assert "Gates – Gate: South; Built: soon" in reading.text
    assert "swordfish" not in reading.text
    assert [mark.section for mark in reading.marks][1:] == ["Gates > row 4", "Gates > row 5"]


def test_merged_cells_of_a_workbook_in_xml_count_in_each_row():
    book = BOOK.replace('<Cell><Data ss:Type="String">North', '<Cell ss:MergeDown="1"><Data ss:Type="String">North')
    book = book.replace('<Cell><Data ss:Type="String">South</Data></Cell>', "")
    assert "Gate: North; Built: soon" in read(book.encode(), "gates.xls").text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            b"<?xml version='1.0'?><w:d xmlns:w='http://schemas.microsoft.com/office/word/2003/wordml'/>",
            r"save it as \.docx",
        ),
        (BOOK[:900].encode(), r"save it as \.xlsx"),
        (BOOK.replace("<Workbook", "<!DOCTYPE a [<!ENTITY b 'c'>]><Workbook", 1).encode(), "declares entities"),
        (b"\x09\x04\x06\x00\x00\x00\x10\x00" * 9, r"save it as \.docx, \.xlsx or \.pptx"),
    ],
)
def test_what_cannot_be_read_says_how_to_save_it(content, reason):
    with pytest.raises(Unreadable, match=reason):
        read(content, "gates.xls")


def test_a_workbook_in_xml_that_claims_many_columns_and_rows_is_read_within_bounds():
    book = BOOK.replace('ss:Index="4"><Data', 'ss:Index="99999999"><Data').replace(
        'Row ss:Index="4"', 'Row ss:Index="7"'
    )
    assert "Gates > row 7" in [mark.section for mark in read(book.encode(), "a.xls").marks]
