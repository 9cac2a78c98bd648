"""Footnotes, equations, tables, text boxes, embedded files and links of Word documents."""

import pytest

from cragside.adapters.documents import word
from cragside.adapters.documents.reading import FileOrigin
from tests.unit.documents.archives import W, paragraph, word_of

WORDS = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>"
VANISH = "<w:rPr><w:vanish/></w:rPr>"


def read(content):
    return word.read(content, FileOrigin("a.docx", "docx"))


def text_of(body, **parts):
    return read(word_of(body, **parts)).text.strip()


def runs(*texts):
    """A paragraph of these texts and elements."""
    return f"<w:p>{''.join(each if each[:1] == '<' else WORDS.format(each) for each in texts)}</w:p>"


def note(kind, identity, *paragraphs):
    return f'<w:{kind} w:id="{identity}">{"".join(paragraphs)}</w:{kind}>'


def refers(kind, identity, more=""):
    return f'<w:r><w:{kind}Reference w:id="{identity}" {more}/></w:r>'


def test_a_note_stands_below_the_paragraph_that_refers_to_it():
    found = text_of(
        runs("Sold in 1911", refers("footnote", 2), " and again", refers("endnote", 2), ".")
        + runs("Let since.", refers("footnote", 7)),
        footnotes=note("footnote", 0, runs("separator"))
        + note("footnote", 7, runs("To the Rowes."))
        + note("footnote", 2, runs("The buyer was Halloran."), runs("Deed 31.")),
        endnotes=note("endnote", 2, runs("Register, page 4.")),
    )
    assert found == (
        "Sold in 1911 and again.\nFootnote 1: The buyer was Halloran. Deed 31.\nEndnote 1: Register, page 4.\n\n"
        "Let since.\nFootnote 2: To the Rowes."
    )


def test_notes_of_headings_are_in_no_section_and_those_of_cells_stand_in_their_row():
    heading = paragraph("House", style="Heading1").replace("</w:p>", f"{refers('footnote', 2)}</w:p>")
    table = f"<w:tbl><w:tr><w:tc>{runs('1911', refers('footnote', 3))}</w:tc><w:tc>{runs('212')}</w:tc></w:tr></w:tbl>"
    reading = read(
        word_of(
            heading + table, footnotes=note("footnote", 2, runs("Now a shop.")) + note("footnote", 3, runs("Or 1912."))
        )
    )
    assert reading.text.strip() == "House\nFootnote 1: Now a shop.\n\n1911 Footnote 2: Or 1912. | 212"
    assert [mark.section for mark in reading.marks] == ["House"]


def test_notes_have_no_numbers_where_word_shows_others():
    notes = note("footnote", 2, runs("One.")) + note("footnote", 3, runs("Two."))
    both = runs("a", refers("footnote", 2, 'w:customMarkFollows="1"'), "b", refers("footnote", 3))
    assert text_of(both, footnotes=notes) == "ab\nFootnote: One.\nFootnote 1: Two."
    section = '<w:sectPr><w:footnotePr><w:numRestart w:val="{}"/></w:footnotePr></w:sectPr>'
    for restarting in (section.format("eachPage"), section.format("eachSect") * 2):
        assert text_of(both + restarting, footnotes=notes) == "ab\nFootnote: One.\nFootnote: Two."
    for counting in (section.format("continuous") * 2, section.format("eachSect")):
        assert text_of(both + counting, footnotes=notes) == "ab\nFootnote: One.\nFootnote 1: Two."


@pytest.mark.attack("hidden text")
def test_notes_that_hidden_or_deleted_text_refers_to_are_left_out():
    hidden = f'<w:r>{VANISH}<w:footnoteReference w:id="2"/></w:r>'
    body = runs("a", hidden, f"<w:del>{refers('footnote', 2)}</w:del>") + runs("b", refers("footnote", 3))
    notes = note("footnote", 2, runs("A")) + note("footnote", 3, runs("seen", f"<w:r>{VANISH}<w:t>B</w:t></w:r>"))
    assert text_of(body, footnotes=notes) == "a\n\nb\nFootnote 1: seen"


@pytest.mark.attack("hostile files")
def test_a_note_is_read_once_and_notes_do_not_lead_to_notes():
    notes = note("footnote", 2, runs("long " * 1000, refers("footnote", 2), refers("footnote", 3)))
    found = text_of(runs(*[refers("footnote", 2)] * 1000), footnotes=notes + note("footnote", 3, runs("other")))
    assert found.count("long") == 1000
    assert "other" not in found


def r(text):
    return f"<m:r><m:t>{text}</m:t></m:r>"


def part(name, *content):
    return f"<m:{name}>{''.join(content)}</m:{name}>"


def power(base, exponent):
    return part("sSup", part("e", base), part("sup", exponent))


def fraction(above, below, more=""):
    return part("f", more, part("num", above), part("den", below))


EQUATIONS = {
    "Q = 1.84·b·h^(3/2)": r("Q=1.84·b·") + power(r("h"), fraction(r("3"), r("2"))),
    "η = R/(1.35·E)": r("η = ") + fraction(r("R"), r("1.35·E")),
    "v_max ≤ (a + b)/c": part("sSub", part("e", r("v")), part("sub", r("max"))) + r("≤") + fraction(r("a + b"), r("c")),
    "x_i^2": part("sSubSup", part("e", r("x")), part("sub", r("i")), part("sup", r("2"))),
    "√(2·g·h)": part("rad", part("deg"), part("e", r("2·g·h"))),
    "V^(1/3)": part("rad", part("deg", r("3")), part("e", r("V"))),
    "∑_(i = 1)^n a": part(
        "nary", '<m:naryPr><m:chr m:val="∑"/></m:naryPr>', part("sub", r("i=1")), part("sup", r("n")), part("e", r("a"))
    ),
    "[a + b]^2": power(
        part("d", '<m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr>', part("e", r("a + b"))), r("2")
    ),
    "sin(x)": part("func", part("fName", r("sin")), part("e", part("d", part("e", r("x"))))),
    "(n over k)": fraction(r("n"), r("k"), '<m:fPr><m:type m:val="noBar"/></m:fPr>'),
    "(1, 2; 3, 4)": part(
        "d",
        part("e", part("m", part("mr", part("e", r("1")), part("e", r("2"))),
                       part("mr", part("e", r("3")), part("e", r("4"))))),
    ),
    "lim_(x→0) f": part("func", part("fName", part("limLow", part("e", r("lim")), part("lim", r("x→0")))),
                        part("e", r("f"))),
    "e\u0302_i = (R^(-1))_j R": part("sSub", part("e", part("acc", part("e", r("e")))), part("sub", r("i")))
    + r("=")
    + part("sSub", part("e", part("d", part("e", power(r("R"), r("-1"))))), part("sub", r("j")))
    + r("R"),
    "((a)(b))/c": fraction(part("d", part("e", r("a"))) + part("d", part("e", r("b"))), r("c")),
    "|x|^2": power(part("d", '<m:dPr><m:begChr m:val="|"/><m:endChr m:val="|"/></m:dPr>', part("e", r("x"))), r("2")),
    "Q = h": r("\U0001d444=\u210e"),
    "ab": part("box", part("e", r("a"))) + part("unknown", r("b")),
}  # fmt: skip


@pytest.mark.parametrize("shown", EQUATIONS)
def test_an_equation_is_written_in_a_line(shown):
    assert text_of(runs("<m:oMath>" + EQUATIONS[shown] + "</m:oMath>")) == shown


def test_an_equation_stands_where_its_sentence_has_it():
    equation = f"<m:oMath>{r('b=2')}</m:oMath>"
    assert text_of(runs("With ", equation, " in metres.")) == "With b = 2 in metres."
    assert text_of(runs("The width is", f"<m:oMathPara>{equation}</m:oMathPara>")) == "The width is b = 2"


@pytest.mark.attack("hidden text")
def test_hidden_and_deleted_parts_of_equations_are_left_out():
    hidden = f"<m:r>{VANISH}<m:t>A</m:t></m:r>"
    phantom = part("phant", '<m:phantPr><m:show m:val="0"/></m:phantPr>', part("e", r("B")))
    assert text_of(runs(f"<m:oMath>{r('x')}{hidden}{phantom}<w:del>{r('C')}</w:del></m:oMath>")) == "x"


@pytest.mark.attack("hostile files")
def test_an_equation_nested_deep_takes_no_time_to_speak_of():
    deep = r("x")
    for _ in range(70):
        deep = part("func", part("fName", r("f")), part("e", deep))
    assert text_of(runs(f"<m:oMath>{deep}</m:oMath>")).count("f") == 70


def cell(*content):
    return f"<w:tc>{''.join(content)}</w:tc>"


def table(*rows):
    written = ("".join(row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in written) + "</w:tbl>"


def test_a_table_in_a_table_is_read_once_and_row_by_row():
    inner = table((cell(runs("Item")), cell(runs("Count"))), (cell(runs("Slates")), cell(runs("640"))))
    middle = table((cell(runs("Pallet"), inner, runs("")),))
    body = table((cell(runs("Consignee"), middle),), (cell(runs("a")), cell(runs("b"), runs("c"))))
    assert text_of(body) == "Consignee\nPallet\nItem | Count\nSlates | 640\na | b c"


@pytest.mark.attack("hidden text")
def test_hidden_and_deleted_rows_are_left_out():
    gone = ["<w:trPr><w:hidden/></w:trPr>", "<w:trPr><w:del/></w:trPr>"]
    assert text_of(table((cell(runs("seen")),), *((more, cell(runs("A"))) for more in gone))) == "seen"


def box(*paragraphs):
    return f"<w:txbxContent>{''.join(paragraphs)}</w:txbxContent>"


MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
WP = "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"


def test_a_text_box_is_read_once_below_the_paragraph_that_it_is_anchored_in():
    forms = (
        f"<w:r><mc:AlternateContent {MC}><mc:Choice>{box(runs('Open'), runs('at nine'))}</mc:Choice>"
        f"<mc:Fallback>{box(runs('Open'), runs('at nine'))}</mc:Fallback></mc:AlternateContent></w:r>"
    )
    assert text_of(runs("The weir", forms, " is old.") + runs("x")) == "The weir is old.\nOpen\nat nine\n\nx"


def test_of_several_forms_the_first_with_words_counts():
    forms = (
        f"<mc:AlternateContent {MC}><mc:Choice><w:drawing/></mc:Choice><mc:Choice>{runs('words')}</mc:Choice>"
        f"<mc:Fallback>{runs('other words')}</mc:Fallback></mc:AlternateContent>"
    )
    assert text_of(forms) == "words"


@pytest.mark.attack("hidden text")
def test_hidden_text_boxes_are_left_out():
    anchor = f'<wp:anchor xmlns:wp="{WP}"><wp:docPr hidden="1"/>{box(runs("A"))}</wp:anchor>'
    drawn = f"<w:r><w:drawing>{anchor}</w:drawing></w:r>"
    style = 'xmlns:v="urn:schemas-microsoft-com:vml" style="width:9pt; visibility: hidden"'
    old = f"<w:r><v:shape {style}>{box(runs('B'))}"
    assert text_of(runs("seen", drawn, f"{old}</v:shape></w:r>")) == "seen"


def chunk(number):
    return f'<w:altChunk r:id="c{number}"/>'


def test_embedded_pages_texts_and_documents_stand_where_word_shows_them():
    page = "<!DOCTYPE html><html><body><h1>Handover</h1><p>The key hangs.</p><p hidden>A</p></body></html>"
    archived = (
        'MIME-Version: 1.0\nContent-Type: multipart/related; boundary="b"\n\n--b\nContent-Type: text/html; '
        'charset="utf-8"\nContent-Transfer-Encoding: quoted-printable\n\n<p>Gr=C3=BC=C3=9Fe</p>\n--b--\n'
    )
    inner = word_of(paragraph("Inner", style="Heading2") + chunk(1), chunks=[("x.txt", "not as deep as this")])
    chunks = [
        ("a.htm", page), ("b.rtf", r"{\rtf1 rich}"), ("c.mht", archived), ("d.docx", inner), ("e.txt", "plain"),
        ("f.xml", "<x>raw</x>"), ("g.docx", "broken"),
    ]  # fmt: skip
    body = paragraph("Mill", style="Heading1") + runs("before") + "".join(map(chunk, range(1, 9))) + runs("after")
    reading = read(word_of(body, chunks=chunks))
    assert reading.text.split() == [
        "Mill", "before", "Handover", "The", "key", "hangs.", "rich", "Grüße", "Inner", "plain", "after",
    ]  # fmt: skip
    sections = {mark.section: reading.text[mark.start :].split()[0] for mark in reading.marks}
    assert sections == {"Mill": "rich", "Handover": "Handover", "Inner": "Inner"} | {"Mill": "plain"}


def test_an_embedded_mail_is_read_as_a_mail_of_its_own():
    head = "From: odlum@weir.example\nTo: ada@weir.example\nSubject: Gates\nMIME-Version: 1.0\n"
    plain = f"{head}Content-Type: text/plain\n\na<b>c\nsecond line\n"
    assert text_of(chunk(1), chunks=[("a.eml", plain)]) == "a<b>c\nsecond line"
    both = (
        f'{head}Content-Type: multipart/alternative; boundary="b"\n\n--b\nContent-Type: text/plain\n\nNo HTML.\n'
        "--b\nContent-Type: text/html\n\n<h1>Gates</h1><p>All four gates are shut.</p>\n--b--\n"
    )
    assert text_of(chunk(1), chunks=[("a.mht", both)]).split() == ["Gates", "All", "four", "gates", "are", "shut."]


@pytest.mark.attack("hostile files")
def test_an_embedded_mail_with_a_header_that_is_too_long_is_left_out():
    mail = "From: a@weir.example\nTo: " + "a@weir.example, " * 10_000 + "\n\nwords\n"
    assert text_of(chunk(1) + paragraph("seen"), chunks=[("a.mht", mail)]) == "seen"


def test_a_document_may_be_nothing_but_an_embedded_page_of_a_stated_type():
    types = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override '
        'PartName="/word/part.bin" ContentType="text/html"/></Types>'
    )
    page = "<p>The key hangs.</p>"
    assert text_of(chunk(1), chunks=[("part.bin", page)], more={"[Content_Types].xml": types}) == "The key hangs."


@pytest.mark.attack("hostile files")
def test_an_embedded_file_is_read_once_and_none_outside_of_the_document():
    body = "".join(map(chunk, (1, 1, 1, 2, 3)))
    chunks = [("a.txt", "words"), ("../../../etc/passwd", ""), ("../document.xml", "")]
    assert text_of(body, chunks=chunks[:1], more={}) == "words"
    assert text_of(body, chunks=chunks, more={}) == "words"


def linked(identity, text, more=""):
    return f'<w:hyperlink r:id="{identity}" {more}>{WORDS.format(text)}</w:hyperlink>'


def test_the_address_of_a_link_stands_behind_its_text():
    found = text_of(
        runs(
            "Book ", linked("a1", "here"), ", or ", linked("a2", "write"), " to ", linked("a3", "huts.example.org"), "."
        ),
        addresses=[
            "https://huts.example.org/book?hut=7",
            "mailto:hut@example.org?subject=x",
            "https://huts.example.org/",
        ],
    )
    assert found == "Book here (https://huts.example.org/book?hut=7), or write (hut@example.org) to huts.example.org."


def test_fields_are_links_too():
    def step(kind):
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    asked = "".join(
        f"<w:r><w:instrText>{each}</w:instrText></w:r>" for each in (' HYPERLINK \\o "tip" ', '"https://a.example/" ')
    )
    whole = runs("See ", step("begin"), asked, "HIDDEN", step("separate"), "this", step("end"), " page", step("end"))
    assert text_of(whole) == "See this (https://a.example/) page"
    simple = f"<w:fldSimple w:instr='HYPERLINK \"https://b.example\"'>{WORDS.format('that')}</w:fldSimple>"
    assert text_of(runs(simple)) == "that (https://b.example)"
    inside = '<w:r><w:instrText>HYPERLINK \\l "_Toc1"</w:instrText></w:r>'
    assert text_of(runs(step("begin"), inside, step("separate"), "1 Weir", step("end"))) == "1 Weir"


def test_links_of_notes_have_the_addresses_of_their_part():
    related = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="a1" '
        'Type="x/hyperlink" Target="https://note.example/" TargetMode="External"/></Relationships>'
    )
    found = text_of(
        runs("a", refers("footnote", 2), linked("a1", "b")),
        footnotes=note("footnote", 2, runs(linked("a1", "c"))),
        addresses=["https://body.example/"],
        more={"word/_rels/footnotes.xml.rels": related},
    )
    assert found == "ab (https://body.example/)\nFootnote 1: c (https://note.example/)"


def test_a_document_may_have_another_name_in_its_archive():
    content = word_of(
        "",
        more={
            "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            '<Relationship Id="r" Type="x/officeDocument" Target="/word/document2.xml"/></Relationships>',
            "word/document2.xml": f'<w:document xmlns:w="{W}"><w:body>{paragraph("second")}</w:body></w:document>',
        },
    )
    assert read(content).text.strip() == "second"


STYLES = """<w:style w:type="paragraph" w:styleId="Gone"><w:name w:val="gone"/><w:rPr><w:vanish/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="Heir"><w:name w:val="heir"/><w:basedOn w:val="Gone"/></w:style>
<w:style w:type="paragraph" w:styleId="Back"><w:name w:val="back"/><w:basedOn w:val="Gone"/>
<w:rPr><w:vanish w:val="0"/></w:rPr></w:style>
<w:style w:type="character" w:styleId="Veil"><w:name w:val="veil"/><w:rPr><w:vanish/></w:rPr></w:style>"""


@pytest.mark.attack("hidden text")
def test_text_that_a_style_hides_is_left_out():
    veiled = "<w:r><w:rPr><w:rStyle w:val='Veil'/></w:rPr><w:t>veiled </w:t></w:r>"
    told = "<w:r><w:rPr><w:rStyle w:val='Veil'/><w:vanish w:val='0'/></w:rPr><w:t>told</w:t></w:r>"
    body = paragraph("gone", style="Gone") + paragraph("heir", style="Heir") + paragraph("back", style="Back")
    found = text_of(body + runs("seen ", veiled, told), styles=STYLES)
    assert found == "back\n\nseen told"


@pytest.mark.attack("hidden text")
def test_notes_that_a_style_hides_are_left_out():
    hidden = note("footnote", 2, paragraph("gone", style="Gone"))
    assert "gone" not in text_of(runs("Sold", refers("footnote", 2), "."), styles=STYLES, footnotes=hidden)
