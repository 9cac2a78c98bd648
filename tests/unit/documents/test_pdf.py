"""PDF pages: columns in reading order, and what people wrote onto a page."""

import pytest

from cragside.adapters.documents.kinds import PDF
from cragside.adapters.documents.reading import FileOrigin
from tests.unit.documents.archives import pdf_of

HIDDEN, NOT_VIEWED, PRINTED = 2, 32, 4
PASSWORD, SEVERAL, RADIO, LIST_OR_COMBO = 1 << 13, 1 << 21, 1 << 15, 1 << 17
LEFT = [
    "The drainage of the low mea-",
    "dow began with the tur-",
    "bine pump of 1908. It was",
    "built by Kestner of Vell",
    "and lifted 62 litres a sec-",
    "ond over the dike.",
]
RIGHT = [
    "After the war the mea-",
    "dow was sold to the par-",
    "ish. A diesel pump took",
    "over in 1951 and runs to",
    "this day. Its keeper is",
    "paid by the hectare.",
]


def text(x, y, words, *, size=11):
    return f"BT /F {size} Tf 1 0 0 1 {x} {y} Tm ({words}) Tj ET\n"


def beside(*columns, top=700, at=(72, 320, 480), step=15):
    """The columns, drawn line by line across them."""
    lines = []
    for number in range(max(map(len, columns))):
        for x, column in zip(at, columns, strict=False):
            if number < len(column):
                lines.append(text(x, top - step * number, column[number]))
    return "".join(lines)


def page_of(content, *annotations, form=True, page="", more=()):
    """A PDF with one page. The annotations are the fields of its form, too; `more` are objects from number 50 on."""
    numbers = [f"{number} 0 R" for number in range(6, 6 + len(annotations))]
    fields = f"/AcroForm<</Fields[{' '.join(numbers)}]/DR<</Font<</F 5 0 R>>>>/DA(/F 11 Tf 0 g)>>" if form else ""
    objects = [
        f"<</Type/Catalog/Pages 2 0 R{fields}>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>"
        f"/Annots[{' '.join(numbers)}]{page}>>",
        f"<</Length {len(content)}>>\nstream\n{content}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        *annotations,
    ]
    objects += ["null"] * (49 - len(objects)) + list(more) if more else []
    return pdf_of(*objects)


def widget(x, y, entries, *, width=200, flags=PRINTED):
    return f"<</Type/Annot/Subtype/Widget/Rect[{x} {y} {x + width} {y + 16}]/F {flags}{entries}>>"


def typed(x, y, words, *, name="f", more="", **place):
    return widget(x, y, f"/FT/Tx/T({name})/V({words}){more}", **place)


def tick(x, y, state, *, name="box", more=""):
    looks = "/AP<</N<</Yes 5 0 R/Off 5 0 R>>>>"
    return widget(x, y, f"/FT/Btn/T({name})/V/{state}/AS/{state}{looks}{more}", width=12)


def note(kind, words, *, flags=PRINTED, more="", x=300, y=400):
    return f"<</Type/Annot/Subtype/{kind}/Rect[{x} {y} {x + 200} {y + 20}]/F {flags}/Contents({words}){more}>>"


def read(content):
    return PDF.reader(content, FileOrigin("a.pdf", "pdf")).text.strip()


def test_columns_that_are_drawn_line_by_line_are_read_one_after_the_other():
    whole = read(
        page_of(text(72, 730, "How the low meadow of Vell was drained, and by whom it was paid") + beside(LEFT, RIGHT))
    )
    assert whole == (
        "How the low meadow of Vell was drained, and by whom it was paid\n"
        "The drainage of the low meadow began with the turbine pump of 1908. It was\nbuilt by Kestner of Vell\n"
        "and lifted 62 litres a second over the dike.\n"
        "After the war the meadow was sold to the parish. A diesel pump took\nover in 1951 and runs to\n"
        "this day. Its keeper is\npaid by the hectare."
    )


def test_three_columns_are_read_one_after_the_other():
    third = ["The old turbine", "stands in the yard", "of the school, as a", "memory of water", "that once rose here"]
    whole = read(page_of(beside([line[:17] for line in LEFT], [line[:17] for line in RIGHT], third, at=(60, 230, 400))))
    assert whole.endswith("\n".join(third))
    assert whole.index("and lifted") < whole.index("After the war") < whole.index("paid by") < whole.index("The old")


def test_text_above_and_below_columns_stays_there():
    whole = read(
        page_of(
            text(72, 760, "A heading as wide as both columns of this page together, or wider")
            + beside(LEFT, RIGHT)
            + text(72, 560, "1 A footnote as wide as both columns of this page together, or wider")
            + text(290, 40, "17")
        )
    )
    assert whole.startswith("A heading")
    assert whole.endswith("or wider\n17")
    assert whole.index("paid by the hectare.") < whole.index("1 A footnote")


def test_columns_on_a_turned_page_are_read_one_after_the_other():
    turned = "q 0 1 -1 0 595 0 cm\n" + beside(LEFT, RIGHT, top=500) + "Q\n"
    whole = read(page_of(turned, page="/Rotate 90"))
    assert "low meadow began" in whole
    assert "sold to the parish." in whole


def test_letters_along_the_margin_do_not_hide_columns():
    stamp = "BT /F 20 Tf 0 1 -1 0 30 500 Tm (arXiv:2011.01) Tj ET\n"
    whole = read(page_of(stamp + beside(LEFT, RIGHT)))
    assert "low meadow began" in whole
    assert "arXiv:2011.01" in whole


def test_columns_that_the_file_draws_one_after_the_other_keep_their_text():
    content = beside(LEFT) + beside(RIGHT, at=(320,))
    assert read(page_of(content)).startswith("The drainage of the low meadow began with the turbine pump")


ROWS = [("Abel Ammer", "Porter of the north gate"), ("Bruna Bock", "Clerk of the works"), ("Cato Dahl", "Driver")] * 3
WORDS = [
    ("turbine pump", "lifts water over the dike at low"), ("", "tide and in floods"),
    ("diesel pump", "runs while the turbine pump is being"), ("", "repaired in summer"),
    ("keeper house", "stands at the end of the long dike"), ("", "and has a small garden"),
]  # fmt: skip
TABLES = {
    "of short cells": beside([one for one, _ in ROWS], [other for _, other in ROWS]),
    "of numbers": beside([f"{number * 7} 300 412 500 611 700" for number in range(8)], ["1 2 3 4 5 6 7 8"] * 8),
    "of terms and what they mean": beside([one for one, _ in WORDS], [other for _, other in WORDS]),
}


@pytest.mark.parametrize("content", TABLES.values(), ids=TABLES)
def test_rows_of_a_table_stay_together(content):
    lines = read(page_of(content)).split("\n")
    first = [line for line in lines if line.startswith(("Abel", "Cato", "0 300", "turbine", "keeper"))]
    assert first
    assert all(len(line.split()) > 3 or line == "Cato Dahl Driver" for line in first)


def test_a_table_of_running_text_stays_together_if_lines_are_drawn_across_it():
    lines = "".join(f"72 {y} 420 0.5 re f\n" for y in (712, 667, 622))
    drawn = read(page_of(lines + beside(LEFT, RIGHT)))
    assert "The drainage of the low mea- After the war" in drawn


def test_values_of_a_form_stand_beside_their_labels():
    content = text(72, 742, "Vessel name:") + text(72, 712, "Owner") + text(72, 682, "Berth") + text(72, 660, "Remarks")
    whole = read(
        page_of(
            content,
            typed(220, 738, "Grebe of Marlow", name="a"),
            typed(220, 708, "Quilby", name="b"),
            widget(220, 678, "/FT/Ch/Ff 131072/T(c)/V(rw)/Opt[[(rw)(River wall)][(ps)(Pool side)]]"),
            typed(72, 636, "Shallow draught,\\rfolding mast", name="d", more="/Ff 4096"),
        )
    )
    assert whole == (
        "Vessel name: Grebe of Marlow\nOwner: Quilby\nBerth: River wall\nRemarks: Shallow draught,\nfolding mast"
    )


def test_a_list_shows_all_choices():
    field = widget(220, 738, f"/FT/Ch/Ff {SEVERAL}/T(c)/V[(Oats)(Rye)]/Opt[(Oats)(Wheat)(Rye)]")
    assert read(page_of(text(72, 742, "Grain:"), field)) == "Grain: Oats, Rye"


def test_check_boxes_say_whether_they_are_checked():
    content = text(72, 742, "Meals:") + text(236, 742, "Fish") + text(336, 742, "Rice") + text(72, 712, "Shore power:")
    whole = read(
        page_of(
            content, tick(220, 740, "Yes", name="a"), tick(320, 740, "Off", name="b"), tick(220, 710, "Yes", name="c")
        )
    )
    assert whole == "Meals: [x] Fish [ ] Rice\nShore power: [x] Yes"


def test_a_field_without_a_label_has_its_tooltip_or_name():
    fields = (
        typed(300, 400, "12 May", name="x1", more="/TU(Day of arrival)"),
        typed(300, 300, "Odlum", name="form[0].surveyor_name[0]"),
        typed(300, 200, "7", name="f1_02[0]"),
    )
    whole = read(page_of(text(72, 742, "Permit"), *fields))
    assert whole == "Permit\n\nDay of arrival: 12 May\nsurveyor name: Odlum\n7"


def test_a_value_replaces_the_blank_that_is_printed_for_it():
    content = text(72, 742, "Name: ______________________") + text(72, 712, "Date ...........................")
    whole = read(page_of(content, typed(105, 738, "Quilby"), note("FreeText", "12 May", x=100, y=706)))
    assert whole.split("\n")[0] == "Name: Quilby"
    assert whole.split("\n")[1].startswith("Date: 12 May")


def test_a_value_that_the_page_shows_too_is_read_once():
    content = text(72, 742, "Owner:") + text(222, 742, "Quilby")
    assert read(page_of(content, typed(220, 738, "Quilby"))) == "Owner: Quilby"


def test_what_people_cannot_see_of_a_form_is_left_out():
    fields = (
        typed(220, 738, "secret one", name="a", flags=HIDDEN),
        typed(220, 708, "secret two", name="b", flags=NOT_VIEWED),
        typed(220, 678, "secret three", name="c", more=f"/Ff {PASSWORD}"),
        typed(220, 648, "secret four", name="d", width=0),
        typed(900, 618, "secret five", name="e"),
        note("Text", "secret six", flags=HIDDEN),
        note("FreeText", "secret seven", flags=NOT_VIEWED),
        note("Popup", "secret eight"),
        note("Text", "Accepted set by Ada", more="/StateModel(Review)/State(Accepted)"),
    )
    assert read(page_of(text(72, 742, "Owner:"), *fields)) == "Owner:"


def test_typed_text_and_notes_are_read_with_their_authors():
    notes = (
        note("FreeText", "Measured clear span 3.85 m", y=500),
        note("Text", "Raise the parapet", more="/T(Odlum)"),
        note("Highlight", "By how much?"),
        note("Highlight", "By how much?", y=300),
        note("Highlight", "Survey sheet 7", y=200),
    )
    assert read(page_of(text(72, 742, "Survey sheet 7"), *notes, form=False)) == (
        "Survey sheet 7\n\nMeasured clear span 3.85 m\nNote (Odlum): Raise the parapet\nNote: By how much?"
    )


def test_typed_text_does_not_tear_a_sentence():
    content = text(72, 742, "The culvert was measured on")
    assert read(page_of(content, note("FreeText", "see sheet 8", x=240, y=738))) == (
        "The culvert was measured on\n\nsee sheet 8"
    )


def test_a_page_of_fields_alone_has_text():
    assert read(page_of("", typed(220, 738, "Hello", name="word"))) == "word: Hello"


def test_values_on_a_turned_page_stand_beside_their_labels():
    content = "BT /F 11 Tf 0 1 -1 0 100 72 Tm (Owner:) Tj ET"
    field = "<</Type/Annot/Subtype/Widget/Rect[88 200 104 400]/F 4/FT/Tx/T(a)/V(Quilby)>>"
    assert read(page_of(content, field, page="/Rotate 90")) == "Owner: Quilby"


def test_a_page_that_shows_another_number_has_it_in_its_section():
    pages = [f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {number} 0 R>>" for number in (7, 7, 7, 7)]
    # The prefix of the last one is half a character.
    labels = "/PageLabels<</Nums[0<</S/r>>1<</S/D/P(A-)>>2<</S/D>>3<</P<FEFFD800>>>]>>"
    whole = pdf_of(
        f"<</Type/Catalog/Pages 2 0 R{labels}>>",
        "<</Type/Pages/Kids[3 0 R 4 0 R 5 0 R 6 0 R]/Count 4/Resources<</Font<</F 8 0 R>>>>>>",
        *pages,
        f"<</Length {len(text(72, 742, 'Word'))}>>\nstream\n{text(72, 742, 'Word')}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    marks = PDF.reader(whole, FileOrigin("a.pdf", "pdf")).marks
    assert [(mark.page, mark.section) for mark in marks] == [
        (1, "printed page i"),
        (2, "printed page A-1"),
        (3, "printed page 1"),
        (4, ""),
    ]


def test_of_very_many_fields_and_very_long_values_a_part_is_read():
    many = [typed(300, 300, f"word{number}", name=f"name{number}") for number in range(2100)]
    whole = read(page_of(text(72, 742, "x" * 30), *many, typed(300, 100, "y" * 30_000, name="last")))
    assert "word1999" in whole
    assert "word2050" not in whole
    assert len(read(page_of("", typed(300, 100, "y" * 30_000, name="last")))) < 20_100


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize(
    "look",
    [
        "/DA(/F 1 Tf 0 g)",
        "/DA(0 g /F 1.9 Tf)",
        "/DA(/F -.5 Tf)",
        "/DA(/F 11 Tf 1 g)",
        "/DA(/F 11 Tf 1 1 1 rg)",
        "/DA(/F 11 Tf 1.0 1 1.000 rg)",
        "/DA(0 0 0 0 k /F 11 Tf)",
        "/DA(/F 11 Tf 1. 1. 1. rg)",
        "/DA(/F 11 Tf 1 1 1 scn)",
        "/DA(/DeviceCMYK cs 0 0 0 0 sc /F 11 Tf)",
        "/DA(/F 11 Tf 1 g)/C[]",
        "/DA(/F 11 Tf 1 g)/C[1 1 1]/MK<</BG[1 1 1]>>",
        "/DA(/F 11 Tf 1 g)/C[1]/MK<<>>",
        "/DA(/F 11 Tf 1 g)/MK<</BG[]/BC[]>>",
        "/DA(/F 11 Tf 0 g 3 Tr)",
        "/DA(7 Tr /F 11 Tf)",
        "/DA(/F 11 Tf 0 g)/ca 0",
        "/DA(/F 11 Tf 0 g)/CA 0",
        "/DA(/F 11 Tf 0 g)/CA 0.01",
        "/DA(/F 11 Tf 0 g)/DS(font: 1pt Helvetica; color:#000000)",
        "/DA(/F 11 Tf 0 g)/DS(font: 11pt Helvetica; color:#FFFFFF)",
    ],
)
def test_typed_text_and_values_that_nobody_can_see_are_left_out(look):
    content = text(72, 742, "Owner of the boat")
    whole = read(
        page_of(content, note("FreeText", "secret six", more=look), typed(105, 600, "secret seven", more=look))
    )
    assert whole == "Owner of the boat"


@pytest.mark.parametrize(
    "look",
    [
        "",
        "/DA(/F 0 Tf 0 g)",
        "/DA(/F 2 Tf 0.5 g)",
        "/DA(/F 11 Tf 1 0 0 rg)",
        "/DA(/F 11 Tf 1 1 1 rg)/C[0 0 1]",
        "/DA(1 g /F 11 Tf 0 g)",
        "/DA(/F 11 Tf 1 g)/C[0 0 0]",
        "/DA(/F 11 Tf 1 g)/C[0 0 0 1]",
        "/DA(/F 11 Tf 1 1 0 scn)",
        "/DA(/F 11 Tf 3 Tr 0 Tr)",
        "/CA 0.5",
        "/DA(/F 11 Tf 1 g)/DS(font: 11pt Helvetica; color:#000000)",
        "/DA(/F 11 Tf 0 0 0 1 k)",
    ],
)
def test_typed_text_that_can_be_seen_is_read(look):
    assert read(page_of(text(72, 742, "Owner of the boat"), note("FreeText", "Quilby", more=look))).endswith("Quilby")


@pytest.mark.parametrize(("colour", "seen"), [("[]", False), ("[1 1 1]", False), ("[0 0 1]", True)])
def test_white_text_in_a_file_without_a_form_is_read_on_a_colour(colour, seen):
    white = note("FreeText", "Quilby", more=f"/DA(/F 11 Tf 1 g)/C{colour}")
    assert read(page_of(text(72, 742, "Owner of the boat"), white, form=False)).endswith("Quilby") is seen


@pytest.mark.parametrize(("painted", "seen"), [("0 0 0 rg", True), ("1 1 1 rg", False), ("0 0 1 RG", False)])
def test_white_text_with_an_appearance_is_read_on_what_that_paints(painted, seen):
    fill = "S" if painted.endswith("RG") else "f"
    drawn = f"{painted} 0 0 200 20 re {fill} BT /F 11 Tf 1 g 2 2 Td (Quilby) Tj ET"
    form = f"<</Subtype/Form/BBox[0 0 200 20]/Resources<</Font<</F 5 0 R>>>>/Length {len(drawn)}>>"
    white = note("FreeText", "Quilby", more="/DA(/F 11 Tf 1 g)/C[0 1 1]/AP<</N 50 0 R>>")
    whole = page_of(text(72, 742, "Owner of the boat"), white, more=[f"{form}\nstream\n{drawn}\nendstream"])
    assert read(whole).endswith("Quilby") is seen


def test_a_value_that_is_white_on_a_colour_is_read():
    coloured = typed(105, 600, "Quilby", more="/DA(/F 11 Tf 1 g)/MK<</BG[0 0 1]>>")
    assert read(page_of(text(72, 742, "Owner of the boat"), coloured)).endswith("Quilby")


@pytest.mark.attack("hidden text")
@pytest.mark.parametrize("box", ["300 400 300.1 420", "300 400 500 400.1"])
def test_typed_text_in_a_box_that_nobody_can_see_is_left_out(box):
    thin = f"<</Type/Annot/Subtype/FreeText/Rect[{box}]/F {PRINTED}/Contents(secret)/DA(/F 11 Tf 0 g)>>"
    assert read(page_of(text(72, 742, "Owner of the boat"), thin)) == "Owner of the boat"


def table_of_fields(*rows, left=72):
    """Fields in rows, three of them beside each other, the first row at the height of 676."""
    return [
        typed(left + 130 * column, 660 - 22 * row, value, name=f"f{row}{column}", width=110)
        for row, values in enumerate(rows)
        for column, value in enumerate(values)
        if value
    ]


def test_each_row_of_fields_below_the_names_of_columns_has_these_names():
    names = text(72, 690, "Name") + text(202, 690, "Born") + text(332, 690, "Berth")
    rows = ("Ada", "1911", "7"), ("Bert", "", "9"), ("Cleo", "1931", "12")
    assert read(page_of(names, *table_of_fields(*rows))) == (
        "Name: Ada Born: 1911 Berth: 7\n\nName: Bert; Berth: 9\nName: Cleo; Born: 1931; Berth: 12"
    )


def test_values_that_share_the_label_of_their_row_have_the_names_of_their_columns():
    names = text(202, 690, "Length") + text(332, 690, "Beam") + text(72, 664, "Kestrel") + text(72, 642, "Osprey")
    fields = table_of_fields(("7.1 m", "2.3 m"), ("9.4 m", "3.0 m"), left=202)
    assert read(page_of(names, *fields)) == (
        "Length Beam\nKestrel: Length: 7.1 m; Beam: 2.3 m\nOsprey: Length: 9.4 m; Beam: 3.0 m"
    )


PUMPS = [("Year", "Pump", "Litres"), ("1908", "turbine", "62"), ("1951", "diesel", "80"), ("1988", "electric", "140")]
NARROW = [line[:19].strip() for line in LEFT], [line[:19].strip() for line in RIGHT]


def placed(rows, x, y, *, wide=60, step=15):
    return [
        (y - step * number, text(x + wide * column, y - step * number, cell))
        for number, row in enumerate(rows)
        for column, cell in enumerate(row)
    ]


def drawn_across(*lines):
    """Lines with their heights, drawn from top to bottom."""
    return "".join(line for _, line in sorted(lines, key=lambda each: -each[0]))


@pytest.mark.parametrize(
    ("beside_them", "seen"),
    [
        (placed(PUMPS, 340, 685), "Year Pump Litres\n1908 turbine 62\n1951 diesel 80\n1988 electric 140"),
        (placed(PUMPS, 340, 690, step=13), "Year Pump Litres\n1908 turbine 62\n1951 diesel 80\n1988 electric 140"),
        (placed([["Fig. 2: The pump"]], 340, 655), "Fig. 2: The pump"),
    ],
)
def test_columns_beside_a_small_table_or_a_figure_are_read_one_after_the_other(beside_them, seen):
    left, right = ([[line] for line in column] for column in NARROW)
    whole = read(page_of(drawn_across(*placed(left, 60, 700), *placed(right, 200, 700), *beside_them)))
    assert whole.split("\n") == [*NARROW[0], *NARROW[1], *seen.split("\n")]


@pytest.mark.parametrize("at", [72, 200])
def test_columns_close_below_a_small_table_are_read_one_after_the_other(at):
    whole = read(page_of(drawn_across(*placed(PUMPS, at, 750)) + beside(LEFT, RIGHT, top=690)))
    assert whole.startswith("Year Pump Litres\n1908 turbine 62\n1951 diesel 80\n1988 electric 140\nThe drainage")
    assert whole.index("over the dike.") < whole.index("After the war")


def test_a_table_of_texts_with_few_prices_stays_in_rows():
    left, right = ([[line] for line in column] for column in NARROW)
    prices = placed([["12.50"], ["14.75"]], 340, 700, step=45)
    whole = read(page_of(drawn_across(*placed(left, 60, 700), *placed(right, 200, 700), *prices)))
    assert whole.startswith(f"{NARROW[0][0]} {NARROW[1][0]} 12.50\n")
